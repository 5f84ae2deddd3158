"""Every adapter on a GPU with kernels of every kind: the bits of fa4gen.load, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import fa4gen
from tests.vendoring.adapters.gpu_folder import (
    ALIBI,
    BIAS,
    BLOCKS,
    BLOCKS_IN_BYTES,
    CAUSAL,
    DECODE,
    LISTED,
    MAJORS,
    PAGED,
    RAGGED,
    RESIDUAL,
    SCALED,
    SCALED_PAGES,
    SMALL,
    bits,
    import_once,
    load_jax,
    load_torch_cpp,
    load_tvm_ffi,
    torch_with_cuda,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Outputs = list[np.ndarray]
    Call = Callable[[str, "Problem", Outputs], Outputs]

pytestmark = [pytest.mark.gpu("sm_90a"), pytest.mark.filterwarnings("default")]

CALLS = 5
BF16, FP8 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)


class Problem(NamedTuple):
    """The arrays of a call, in the order of the C struct, and its numbers."""

    inputs: tuple[np.ndarray, ...]
    arrays: dict[str, np.ndarray]
    options: dict[str, float]


def random(*shape: int, seed: int = 0, dtype: Any = BF16) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def scales(*shape: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    names = ("key_descale", "value_descale")
    return {name: rng.uniform(0.25, 2, shape).astype(np.float32) for name in names}


def integers(*numbers: Any) -> np.ndarray:
    return np.array(numbers, np.int32)


def attention(
    query: tuple[int, ...], key: tuple[int, ...], dtype: Any = BF16, **arrays: np.ndarray
) -> Callable[[], Problem]:
    def make() -> Problem:
        inputs = (random(*query), *(random(*key, seed=seed, dtype=dtype) for seed in (1, 2)))
        return Problem(inputs, arrays, {} if arrays else {"softmax_scale": 0.2})

    return make


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Callable[[], Problem]:
    return lambda: Problem((a, b, c), {}, {"alpha": 0.5, "beta": -2.0})


def scaled_product(*c: np.ndarray, in_bytes: bool = False) -> Callable[[], Problem]:
    """A product (300, 416) x (416, 264); scales of A lie row by row, of B as its own elements."""

    def make() -> Problem:
        rng = np.random.default_rng(11)
        a, b = random(300, 416, dtype=FP8), random(264, 416, seed=1, dtype=FP8).T
        powers = [rng.integers(120, 134, shape, dtype=np.uint8) for shape in ((300, 4), (3, 4))]
        of_a, of_b = powers if in_bytes else (np.exp2(one - 127.0).astype("f4") for one in powers)
        numbers = {"alpha": 0.5, "beta": -2.0} if c else {"alpha": 0.5}
        return Problem((a, b, *c), {"scale_a": of_a, "scale_b": of_b.T}, numbers)

    return make


TABLE = integers([4, 0, 2, 9, 10], [1, 1, 1, 1, 1], [7, 3, 0, 0, 0])
LENGTHS = integers(300, 64, 100)
DOCUMENT = np.cumsum(np.random.default_rng(3).random((2, 700)) < 0.02, axis=1).astype(np.int32)
CASES: dict[str, Callable[[], Problem]] = {
    CAUSAL: attention((2, 1000, 8, 128), (2, 1200, 2, 128)),
    SMALL: attention((2, 500, 4, 64), (2, 300, 4, 64)),
    RESIDUAL: product(random(300, 200), random(264, 200, seed=1).T, random(300, 264, seed=2)),
    BIAS: product(random(300, 200), random(264, 200, seed=1).T, random(264, seed=2)),
    MAJORS: product(
        random(200, 304).T, random(200, 264, seed=1), random(304, 264, dtype=np.float32)
    ),
    RAGGED: attention(
        (700, 8, 128),
        (900, 2, 128),
        query_offsets=integers(0, 1, 301, 301, 700),
        key_offsets=integers(0, 5, 400, 600, 900),
    ),
    PAGED: attention(
        (30, 8, 64),
        (11, 64, 2, 64),
        sinks=random(8, seed=3, dtype=np.float32),
        query_offsets=integers(0, 10, 11, 30),
        key_lengths=LENGTHS,
        page_table=TABLE,
    ),
    DECODE: attention((3, 1, 16, 128), (3, 4900, 2, 128)),
    ALIBI: attention((2, 300, 8, 128), (2, 290, 2, 128), slope=random(8, seed=3, dtype=np.float32)),
    LISTED: attention((2, 700, 8, 128), (2, 700, 2, 128), document=DOCUMENT),
    SCALED: attention((3, 1, 16, 128), (3, 4900, 2, 128), FP8, **scales(3, 2)),
    SCALED_PAGES: attention(
        (3, 1, 16, 128),
        (11, 64, 2, 128),
        FP8,
        **scales(11, 2),
        key_lengths=LENGTHS,
        page_table=TABLE,
    ),
    BLOCKS: scaled_product(),
    BLOCKS_IN_BYTES: scaled_product(random(300, 264, seed=2), in_bytes=True),
}


def as_it_lies(make: Callable[[np.ndarray], Any], array: np.ndarray) -> Any:
    """An array of a framework by ``make``; a transposed one stays transposed."""
    return make(array) if array.flags.c_contiguous else make(array.T).T


def to_cupy(array: np.ndarray) -> Any:
    import cupy

    return as_it_lies(cupy.asarray, array.view(np.uint8) if array.dtype == FP8 else array)


def to_torch(array: np.ndarray) -> Any:
    torch = torch_with_cuda()

    def make(array: np.ndarray) -> Any:
        types = {BF16: torch.bfloat16, FP8: torch.float8_e4m3fn}
        if array.dtype not in types:
            return torch.from_numpy(array).cuda()
        words = array.view(f"int{8 * array.itemsize}")
        return torch.from_numpy(words).cuda().view(types[array.dtype])

    return as_it_lies(make, array)


def from_torch(made: Any) -> Outputs:
    torch = torch_with_cuda()
    outputs = made if isinstance(made, tuple | list) else (made,)
    return [one.contiguous().view(torch.uint8).cpu().numpy() for one in outputs]


def by_python(folder: Path) -> Call:
    vend = import_once(folder / "adapters/python/vend.py")

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        given = {key: to_cupy(array) for key, array in problem.arrays.items()}
        made = getattr(vend, name)(*map(to_cupy, problem.inputs), **given, **problem.options)
        return [bits(one.get()) for one in (made if isinstance(made, tuple) else (made,))]

    return call


def by_torch(folder: Path) -> Call:
    torch_with_cuda()
    vend = import_once(folder / "adapters/torch/vend_torch.py")

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        given = {key: to_torch(array) for key, array in problem.arrays.items()}
        inputs = map(to_torch, problem.inputs)
        return from_torch(getattr(vend, name)(*inputs, **given, **problem.options))

    return call


def by_torch_cpp(folder: Path) -> Call:
    operators = load_torch_cpp(folder)

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        given = {key: to_torch(array) for key, array in problem.arrays.items()}
        scales = {key: given.pop(key) for key in list(given) if key.endswith("_descale")}
        inputs = map(to_torch, problem.inputs)
        operator = getattr(operators, name)
        return from_torch(operator(*inputs, *given.values(), **problem.options, **scales))

    return call


def by_jax(folder: Path) -> Call:
    jax, vend = load_jax(folder)
    device = jax.devices("gpu")[0]

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        given = {key: jax.device_put(array, device) for key, array in problem.arrays.items()}
        function = jax.jit(lambda *inputs, **more: getattr(vend, name)(*inputs, **more, **options))
        options = problem.options
        made = function(*(jax.device_put(one, device) for one in problem.inputs), **given)
        made = made if isinstance(made, tuple | list) else (made,)
        return [bits(np.asarray(one)) for one in made]

    return call


def by_tvm_ffi(folder: Path) -> Call:
    torch, vend = torch_with_cuda(), load_tvm_ffi(folder)

    def call(name: str, problem: Problem, expected: Outputs) -> Outputs:
        outputs = [torch.full_like(to_torch(one), float("nan")) for one in expected]
        given = [to_torch(one) for one in problem.arrays.values()]
        numbers = list(problem.options.values()) or [None]
        getattr(vend, name)(*map(to_torch, problem.inputs), *outputs, *given, *numbers)
        return from_torch(outputs)

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


@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_the_runtime(call: Call, name: str) -> None:
    problem = problem_of(name)
    given = {key: to_cupy(array) for key, array in problem.arrays.items()}
    made = fa4gen.load(name)(*map(to_cupy, problem.inputs), **given, **problem.options)
    expected = [one.get() for one in (made if isinstance(made, tuple) else (made,))]
    for _ in range(CALLS):
        found = call(name, problem, expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.ravel(), bits(other).ravel())


@pytest.mark.parametrize("name", CASES)
def test_a_captured_launch_makes_the_same_bits(gpu_folder: Path, name: str) -> None:
    """A thousand replays: each leaves the workspace as the next one needs it."""
    torch = torch_with_cuda()
    function = getattr(import_once(gpu_folder / "adapters/torch/vend_torch.py"), name)
    problem = problem_of(name)
    inputs = [to_torch(one) for one in problem.inputs]
    given = {key: to_torch(array) for key, array in problem.arrays.items()} | problem.options
    expected = from_torch(function(*inputs, **given))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = function(*inputs, **given)
    for _ in range(1000):
        graph.replay()
    for one, other in zip(from_torch(made), expected, strict=True):
        np.testing.assert_array_equal(one, other)
