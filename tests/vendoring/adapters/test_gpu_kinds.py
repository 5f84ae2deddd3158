"""Every adapter on a GPU with kernels of every kind: the bits of fa4gen.load, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import fa4gen
from tests.vendoring.adapters.calls_of_kinds import IN_PLACE, MERGE
from tests.vendoring.adapters.gpu_folder import (
    LISTED,
    bits,
    import_once,
    load_jax,
    load_torch_cpp,
    load_tvm_ffi,
    to_cupy,
    to_torch,
    torch_with_cuda,
)
from tests.vendoring.adapters.gpu_problems import (
    CASES,
    DOCUMENT,
    OTHER_GROUPS,
    Problem,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Outputs = list[np.ndarray]
    Call = Callable[[str, Problem, Outputs], Outputs]

pytestmark = [pytest.mark.gpu("sm_90a"), pytest.mark.filterwarnings("default")]

CALLS = 5
RAISED = "out_amax"
"""The array that a call changes and does not return."""


def poison(like: np.ndarray) -> np.ndarray:
    """An array of a shape and type with all bits set: NaN in each type that kernels write."""
    return np.full_like(bits(like), 255).view(like.dtype)


def from_torch(made: Any) -> Outputs:
    torch = torch_with_cuda()
    outputs = made if isinstance(made, tuple | list) else (made,)
    return [one.contiguous().view(torch.uint8).cpu().numpy() for one in outputs]


def results(made: Any, given: Mapping[str, Any]) -> list[Any]:
    """Return the arrays that a call returns, and the one that it raises."""
    outputs = list(made) if isinstance(made, tuple | list) else [made]
    return [*outputs, given[RAISED]] if RAISED in given else outputs


def by_python(folder: Path) -> Call:
    vend = import_once(folder / "adapters/python/vend.py")

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        given = {key: to_cupy(array) for key, array in problem.arrays.items()}
        made = getattr(vend, name)(*map(to_cupy, problem.inputs), **given, **problem.options)
        return [bits(one.get()) for one in results(made, given)]

    return call


def by_torch(folder: Path) -> Call:
    torch_with_cuda()
    vend = import_once(folder / "adapters/torch/vend_torch.py")

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        given = {key: to_torch(array) for key, array in problem.arrays.items()}
        inputs = map(to_torch, problem.inputs)
        made = getattr(vend, name)(*inputs, **given, **problem.options)
        return from_torch(results(made, given))

    return call


def by_torch_cpp(folder: Path) -> Call:
    operators = load_torch_cpp(folder)

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        given = {key: to_torch(array) for key, array in problem.arrays.items()}
        scales = {key: given.pop(key) for key in list(given) if key.endswith("_descale")}
        inputs = map(to_torch, problem.inputs)
        operator = getattr(operators, f"{name}_out" if "out" in given else name)
        made = operator(*inputs, *given.values(), **problem.options, **scales)
        return from_torch(results(given.get("out", made), given))

    return call


def by_jax(folder: Path) -> Call:
    jax, vend = load_jax(folder)
    device = jax.devices("gpu")[0]

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        if name in IN_PLACE:
            pytest.skip("arrays of JAX do not change")
        given = {key: jax.device_put(array, device) for key, array in problem.arrays.items()}
        function = jax.jit(lambda *inputs, **more: getattr(vend, name)(*inputs, **more, **options))
        options = problem.options
        made = function(*(jax.device_put(one, device) for one in problem.inputs), **given)
        made = made if isinstance(made, tuple | list) else (made,)
        return [bits(np.asarray(one)) for one in made]

    return call


def by_tvm_ffi(folder: Path) -> Call:
    torch_with_cuda()
    vend = load_tvm_ffi(folder)

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        given = {key: to_torch(one) for key, one in problem.arrays.items()}
        new = expected[: len(expected) - (RAISED in given)]
        outputs = [given.pop("out")] if "out" in given else [to_torch(poison(one)) for one in new]
        numbers = list(problem.options.values()) or [None] * (name != MERGE)
        getattr(vend, name)(*map(to_torch, problem.inputs), *outputs, *given.values(), *numbers)
        return from_torch(results(outputs, given))

    return call


ADAPTERS = (by_python, by_torch, by_torch_cpp, by_jax, by_tvm_ffi)


@pytest.fixture(scope="module", params=ADAPTERS)
def call(request: pytest.FixtureRequest, gpu_folder: Path) -> Call:
    made: Call = request.param(gpu_folder)
    return made


def problem_of(name: str) -> Problem:
    problem = CASES[name]()
    if name == LISTED:
        on_gpu = map(to_cupy, problem.inputs[:2])
        lists = fa4gen.load(name).list_blocks(*on_gpu, document=to_cupy(DOCUMENT))
        problem.arrays.update({key: array.get() for key, array in lists.items()})
    return problem


def assert_same(found: Outputs, expected: Outputs, problem: Problem) -> None:
    """Assert that outputs have the bits of the others, as far as they are written."""
    assert len(found) == len(expected)
    for i, (one, other) in enumerate(zip(found, map(bits, expected), strict=True)):
        rows = problem.written if i == 0 else None
        if rows is None:
            np.testing.assert_array_equal(one.ravel(), other.ravel())
        else:
            shape = (*rows.shape, -1)
            np.testing.assert_array_equal(one.reshape(shape)[rows], other.reshape(shape)[rows])


@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_the_runtime(call: Call, name: str) -> None:
    problem = problem_of(name)
    given = {key: to_cupy(array) for key, array in problem.arrays.items()}
    made = fa4gen.load(name)(*map(to_cupy, problem.inputs), **given, **problem.options)
    expected = [one.get() for one in results(made, given)]
    for _ in range(CALLS):
        assert_same(call(name, problem, expected), expected, problem)


class Captured:
    """A call of torch's adapter: made once, then captured into a graph."""

    def __init__(self, folder: Path, name: str, problem: Problem) -> None:
        torch = torch_with_cuda()
        self._function = getattr(import_once(folder / "adapters/torch/vend_torch.py"), name)
        self._options = problem.options
        self._inputs = [to_torch(one) for one in problem.inputs]
        self.given = {key: to_torch(array) for key, array in problem.arrays.items()}
        before = {key: self.given[key].clone() for key in ("out", RAISED) if key in self.given}
        self.expected = self.call()
        for key, tensor in before.items():
            self.given[key].copy_(tensor)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._made = self._call()

    def _call(self) -> Any:
        return self._function(*self._inputs, **self.given, **self._options)

    def call(self) -> Outputs:
        """Return the outputs of a call that is not captured."""
        return from_torch(results(self._call(), self.given))

    def replay(self, times: int) -> Outputs:
        """Return the outputs of the graph after ``times`` replays."""
        for _ in range(times):
            self.graph.replay()
        return from_torch(results(self._made, self.given))


@pytest.mark.parametrize("name", CASES)
def test_a_captured_launch_makes_the_same_bits(gpu_folder: Path, name: str) -> None:
    """A thousand replays: each leaves the workspace as the next one needs it."""
    problem = problem_of(name)
    captured = Captured(gpu_folder, name, problem)
    assert_same(captured.replay(1000), captured.expected, problem)


@pytest.mark.parametrize("name", OTHER_GROUPS)
def test_a_captured_call_takes_other_groups(gpu_folder: Path, name: str) -> None:
    """Where rows of groups are is read on the GPU at each replay."""
    problem = CASES[name]()
    captured = Captured(gpu_folder, name, problem)
    assert_same(captured.replay(1), captured.expected, problem)
    for key, rows in OTHER_GROUPS[name].items():
        captured.given[key].copy_(to_torch(rows))
    found = captured.replay(1)
    assert_same(found, captured.call(), problem._replace(written=None))
