"""The adapter for Python over the stand-in driver, in a process in which that is libcuda.so.1.

Run by test_python_standin.py: ACME_DRIVER is the stand-in's path.
"""

from __future__ import annotations

import ctypes
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.runtime.arguments import DESCALES, TABLES
from fa4gen.runtime.gemm import OTHERS
from fa4gen.vendoring.binding import (
    AttentionArgs,
    Binding,
    GemmArgs,
    Matrix,
    MergeArgs,
    Problem,
    RowNumbers,
    Scales,
    Tensor,
)
from fa4gen.vendoring.host_build import build_library
from fa4gen.vendoring.standin import SimulatedDevice, StandIn
from tests.vendoring.adapters.folders import KERNELS, FakeArray, import_file, write_folder
from tests.vendoring.adapters.gpu_problems import CASES, LISTED
from tests.vendoring.launcher import attention_problems
from tests.vendoring.launcher.families import problems_of
from tests.vendoring.launcher.shipped import shipped_plans

BF16 = ml_dtypes.bfloat16
FIRST_BLOCK = 0x700000000000
PROBLEMS = tuple(name for name in CASES if name != LISTED)
"""Lists of blocks are made on a GPU."""
NAMES = tuple(
    dict.fromkeys((*KERNELS, "decode_d128_splits_bf16", "d128_alibi_causal_bf16", *PROBLEMS))
)


class Calls:
    """The adapter, the driver below it, and the library by C's own structs."""

    def __init__(self, folder: Path) -> None:
        driver = Path(os.environ["ACME_DRIVER"])
        write_folder(folder, NAMES, ("python",))
        build_library(folder, folder / "libacme.so")
        self.driver = ctypes.CDLL(str(driver))
        self.driver.more_set_capture.argtypes = (ctypes.c_uint64, ctypes.c_uint64)
        self.stand_in = StandIn(driver)
        self.acme = import_file(folder / "adapters/python/acme.py")
        self.c = Binding(folder / "libacme.so", "acme")

    def reset(self) -> None:
        """Device 2 is of another architecture; the library asks each for its own only once."""
        self.stand_in.reset()
        self.stand_in.set_devices(*map(SimulatedDevice, ("sm_90a", "sm_90a", "sm_100a")))
        self.stand_in.set_current(0)
        self.driver.more_set_capture(0, 0)

    def traits(self, kernel: str) -> Problem:
        traits = Problem(struct_size=ctypes.sizeof(Problem))
        handle = self.c.kernel(f"acme_{kernel}").handle
        assert self.c.kernel_traits(handle, ctypes.byref(traits)) == 0
        return traits

    def same_as_c(self, kernel: str, args: Any) -> None:
        """The adapter has launched once: C with these arguments makes the same launch and maps."""
        launches, maps = self.stand_in.launches, self.stand_in.maps
        launch = launches[-1]
        assert maps or kernel.startswith("merge"), kernel
        of_kernel = self.c.kernel(f"acme_{kernel}")
        args.workspace = None
        if of_kernel.workspace_bytes(ctypes.byref(args)):
            memory = [int.from_bytes(p, "little") for p in launch.parameters if len(p) == 8]
            inside = [m for m in memory if FIRST_BLOCK <= m < FIRST_BLOCK + (1 << 30)]
            args.workspace = min(inside)
            args.workspace_bytes = of_kernel.workspace_bytes(ctypes.byref(args))
        status = of_kernel.launch(ctypes.byref(args), launch.stream)
        assert not status, self.c.words(status)
        again = self.stand_in.launches[len(launches) :]
        assert [replace(one, order=0) for one in again] == [
            replace(one, order=0) for one in launches
        ]
        new_maps = self.stand_in.maps[len(maps) :]
        assert [replace(m, order=0) for m in new_maps] == [replace(m, order=0) for m in maps]

    def workspace(self, stream: int) -> int:
        """The workspace that a launch on the stream gets."""
        query, out, lse = array(1, 300, 2, 128), array(1, 300, 2, 128), floats(1, 2, 300)
        self.acme.d128_causal_bf16(query, query, query, out=out, lse=lse, stream=stream)
        launch = self.stand_in.launches[-1]
        memory = [int.from_bytes(p, "little") for p in launch.parameters if len(p) == 8]
        (inside,) = [m for m in memory if FIRST_BLOCK <= m < FIRST_BLOCK + (1 << 30)]
        return inside

    def forget_workspaces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(self.acme, "_resources", type(self.acme._resources)())


@pytest.fixture(scope="module")
def _calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("python")
        patch.setenv("ACME_LIBRARY", str(folder / "libacme.so"))
        return Calls(folder)


@pytest.fixture
def calls(_calls: Calls) -> Calls:
    _calls.reset()
    return _calls


def array(*shape: int, dtype: Any = BF16, device: int = 0) -> FakeArray:
    """Like the GPU's, an array whose address is a multiple of 256."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 256, np.uint8)
    start = -raw.ctypes.data % 256
    return FakeArray(raw[start : start + size].view(dtype).reshape(shape), device)


def floats(*shape: int) -> FakeArray:
    return array(*shape, dtype=np.float32)


def integers(*shape: int) -> FakeArray:
    return array(*shape, dtype=np.int32)


def view(of: FakeArray, *axes: int) -> FakeArray:
    return FakeArray(of.array.transpose(axes))


def tensor(of: FakeArray, batch: int, row: int, head: int) -> Tensor:
    strides = [stride // of.array.itemsize for stride in of.array.strides]
    return Tensor(of.array.ctypes.data, strides[batch], strides[row], strides[head])


@pytest.mark.parametrize("name", NAMES)
def test_each_kernel_makes_the_launch_of_c(calls: Calls, name: str) -> None:
    plan = shipped_plans()[name]
    problem = problems_of(plan).plain_problem(plan)
    if plan.kernel == "attention":  # with the scales of fp8, too
        places = {word: (20 + i) << 40 for i, word in enumerate(attention_problems.taken(plan))}
        problem = replace(problem, arrays={**problem.arrays, **places})
    given = problem.python_arguments(plan)
    device = 2 if plan.arch == "sm_100a" else 0
    calls.stand_in.set_current(device)
    inputs, more = ("a", "b", "c"), ("out", "out_scales", *OTHERS)
    if plan.kernel == "merge":
        inputs, more = ("parts", "part_lse"), ("out", "lse")
    if plan.kernel == "attention":
        inputs, more = ("query", "key", "value"), ("out", "lse", *DESCALES, "sinks", *TABLES)
    views = {word: getattr(given, word) for word in (*inputs, *more)}
    views |= dict(getattr(given, "tensors", ()))
    arrays = {word: FakeArray.of(one, device) for word, one in views.items() if one is not None}
    positional = [arrays.pop(word) for word in inputs if word in arrays]
    getattr(calls.acme, name)(*positional, **arrays, stream=77)
    assert {one.stream for one in calls.stand_in.launches} == {77}
    calls.same_as_c(name, problem.c_args())


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_problems_for_a_gpu_are_launched(
    calls: Calls, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New outputs are where they would be, with the shapes that the masks of rows have."""
    made: list[FakeArray] = []

    def empty(word: str, like: Any, shape: tuple[int, ...], dtype: str, stream: Any) -> FakeArray:
        del word, like, stream
        made.append(array(*shape, dtype=getattr(ml_dtypes, dtype, dtype)))
        return FakeArray(made[-1].array)

    monkeypatch.setattr(FakeArray, "__getitem__", lambda one, at: FakeArray(one.array[at]), False)
    monkeypatch.setattr(calls.acme, "_empty", empty)
    problem = CASES[name]()
    given = {key: FakeArray(one) for key, one in problem.arrays.items()} | problem.options
    getattr(calls.acme, name)(*map(FakeArray, problem.inputs), **given, stream=77)
    assert calls.stand_in.launches
    assert problem.written is None or made[0].shape[:-1] == problem.written.shape


def merge_call(
    calls: Calls, parts: FakeArray, part_lse: FakeArray, out: FakeArray, lse: FakeArray
) -> None:
    """Merge by the adapter, and by C with the strides of the arrays."""
    calls.acme.merge_d128_bf16(parts, part_lse, out=out, lse=lse, stream=5)
    count, *lead, rows, heads, _ = parts.shape

    def strides(of: FakeArray, axes: int) -> list[int]:
        """Return the strides of batches, 0 without an axis of them, and of two other axes."""
        found = [one // of.array.itemsize for one in of.array.strides]
        found = found[:-1] if of.array.itemsize == 2 else found
        return [0, *found][-axes:]

    args = MergeArgs(
        struct_size=ctypes.sizeof(MergeArgs),
        num_parts=count, batch=lead[0] if lead else 1, rows=rows, heads=heads,
        parts=Tensor(parts.array.ctypes.data, *strides(parts, 3)),
        part_stride=parts.array.strides[0] // 2,
        part_lse=RowNumbers(part_lse.array.ctypes.data, *strides(part_lse, 3)),
        part_lse_stride=part_lse.array.strides[0] // 4,
        out=Tensor(out.array.ctypes.data, *strides(out, 3)),
        lse=RowNumbers(lse.array.ctypes.data, *strides(lse, 3)),
    )  # fmt: skip
    if not lead:
        args.parts.batch_stride = args.part_lse.batch_stride = 0
    calls.same_as_c("merge_d128_bf16", args)


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("count", [1, 3, 17])
def test_any_number_of_parts(calls: Calls, count: int, batch: tuple[int, ...]) -> None:
    parts, part_lse = array(count, *batch, 40, 3, 128), floats(count, *batch, 3, 40)
    merge_call(calls, parts, part_lse, array(*batch, 40, 3, 128), floats(*batch, 3, 40))


def test_no_parts(calls: Calls) -> None:
    merge_call(calls, array(0, 2, 40, 3, 128), floats(0, 2, 3, 40), array(2, 40, 3, 128),
               floats(2, 3, 40))  # fmt: skip


@pytest.mark.parametrize("batch", [(), (2,)])
def test_parts_are_merged_in_place(calls: Calls, batch: tuple[int, ...]) -> None:
    parts, part_lse = array(3, *batch, 40, 3, 128), floats(3, *batch, 3, 40)
    out, lse = FakeArray(parts.array[2]), FakeArray(part_lse.array[1])
    merge_call(calls, parts, part_lse, out, lse)


def test_rows_and_heads_may_change_places(calls: Calls) -> None:
    parts, out = array(3, 2, 3, 40, 128), array(2, 3, 40, 128)
    part_lse, lse = floats(3, 2, 40, 3), floats(2, 40, 3)
    merge_call(calls, view(parts, 0, 1, 3, 2, 4), view(part_lse, 0, 1, 3, 2),
               view(out, 0, 2, 1, 3), view(lse, 0, 2, 1))  # fmt: skip


def test_outputs_that_meet_other_parts_are_refused(calls: Calls) -> None:
    parts, part_lse = array(3, 2, 40, 3, 128), floats(3, 2, 3, 40)
    lies = np.concatenate([parts.array[0, 1:], parts.array[1, :1]])  # has the extents of a part
    moved = FakeArray(np.lib.stride_tricks.as_strided(parts.array[0, 1:], lies.shape))
    given = {"out": array(2, 40, 3, 128), "lse": floats(2, 3, 40)}
    for changed, said in (
        ({"out": moved}, "^out: expected memory"),
        ({"lse": FakeArray(part_lse.array.reshape(-1)[240:480].reshape(2, 40, 3).swapaxes(1, 2))},
         "^lse: expected memory"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            calls.acme.merge_d128_bf16(parts, part_lse, **{**given, **changed}, stream=5)
    assert not calls.stand_in.launches


@pytest.mark.parametrize("layout", ["bshd", "bhsd"])
def test_layouts_and_the_scale(calls: Calls, layout: str) -> None:
    row, head = (1, 2) if layout == "bshd" else (2, 1)

    def shaped(rows: int, heads: int) -> FakeArray:
        return array(2, *((rows, heads) if layout == "bshd" else (heads, rows)), 128)

    query, out, key, value = shaped(300, 8), shaped(300, 8), shaped(420, 2), shaped(420, 2)
    lse = floats(2, 8, 300)
    result = calls.acme.d128_causal_bf16(
        query, key, value, out=out, lse=lse, softmax_scale=0.3, layout=layout, stream=77
    )
    assert result == (out, lse)
    args = AttentionArgs(
        struct_size=ctypes.sizeof(AttentionArgs),
        batch=2, query_rows=300, key_rows=420, query_heads=8, key_heads=2,
        query=tensor(query, 0, row, head),
        key=tensor(key, 0, row, head),
        value=tensor(value, 0, row, head),
        out=tensor(out, 0, row, head),
        lse=lse.array.ctypes.data,
        softmax_scale=0.3,
    )  # fmt: skip
    calls.same_as_c("d128_causal_bf16", args)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_matrices_that_a_batch_shares(calls: Calls, batch: tuple[int, ...]) -> None:
    a, weight, c = array(*batch, 200, 72), array(136, 72), array(200, 136)
    out = array(*batch, 200, 136)
    calls.acme.gemm_bf16_residual_sm90(
        a, view(weight, 1, 0), c, out=out, alpha=0.7, beta=-2, stream=5
    )
    of_one = 1 if batch else 0
    args = GemmArgs(
        struct_size=ctypes.sizeof(GemmArgs),
        batch=3 if batch else 1, m=200, n=136, k=72,
        a=Matrix(a.array.ctypes.data, of_one * 200 * 72, 72),
        b=Matrix(weight.array.ctypes.data, 0, 72),
        c=Matrix(c.array.ctypes.data, 0, 136),
        out=Matrix(out.array.ctypes.data, of_one * 200 * 136, 136),
        alpha=0.7, beta=-2,
    )  # fmt: skip
    calls.same_as_c("gemm_bf16_residual_sm90", args)


def scaled_call(calls: Calls, scale_a: FakeArray, scale_b: FakeArray, *batch: int) -> None:
    """Call with C's function of A (200, 300) and B (300, 144), of which all share the latter."""
    fp8 = ml_dtypes.float8_e4m3fn
    a, weight = array(*batch, 200, 304, dtype=fp8), array(144, 304, dtype=fp8)
    out = array(*batch, 200, 144)
    a, weight = (FakeArray(one.array[..., :300]) for one in (a, weight))
    calls.acme.gemm_fp8_scaled_sm90(
        a, view(weight, 1, 0), scale_a=scale_a, scale_b=scale_b, out=out, stream=5
    )
    of_one = 1 if batch else 0
    of_a = scale_a.array.ctypes.data, *(of // 4 for of in (0, *scale_a.array.strides)[-3:])
    args = GemmArgs(
        struct_size=ctypes.sizeof(GemmArgs),
        batch=3 if batch else 1, m=200, n=144, k=300,
        a=Matrix(a.array.ctypes.data, of_one * 200 * 304, 304),
        b=Matrix(weight.array.ctypes.data, 0, 304),
        out=Matrix(out.array.ctypes.data, of_one * 200 * 144, 144),
        scale_a=Scales(*of_a),
        scale_b=Scales(scale_b.array.ctypes.data, 0, 1, 2),
        alpha=1,
    )  # fmt: skip
    calls.same_as_c("gemm_fp8_scaled_sm90", args)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_scales_of_blocks(calls: Calls, batch: tuple[int, ...]) -> None:
    scaled_call(calls, floats(*batch, 200, 3), floats(3, 2), *batch)
    calls.reset()
    axes = (0, 2, 1) if batch else (1, 0)
    scaled_call(calls, view(floats(*batch, 3, 200), *axes), floats(3, 2), *batch)


def test_wrong_scales_are_named(calls: Calls) -> None:
    for scales, said in (
        ((floats(200, 2), floats(3, 2)), r"scale_a: expected shape \(200, 3\)"),
        ((floats(200, 3), floats(2, 3)), r"scale_b: expected shape \(3, 2\)"),
        ((array(200, 3), floats(3, 2)), "scale_a: expected float32, got bfloat16"),
        ((floats(3, 200, 3), floats(3, 2)), r"scale_a: expected shape \(200, 3\)"),
        ((None, floats(3, 2)), "scale_a: expected an array"),
    ):
        with pytest.raises(ValueError, match=said):
            scaled_call(calls, *scales)
    assert not calls.stand_in.launches


def test_best_is_the_kernel_that_c_picks(calls: Calls) -> None:
    problem = {
        "family": "attention", "dtype": "bf16", "out_dtype": "bf16", "batch": 2,
        "query_rows": 512, "key_rows": 512, "query_heads": 8, "key_heads": 2,
        "depth": 128, "value_depth": 128, "mask": "causal", "lse": True,
    }  # fmt: skip
    assert calls.acme.best(0, **problem) is calls.acme.d128_causal_bf16
    product = {
        "family": "gemm", "dtype": "bf16", "out_dtype": "bf16", "batch": 1,
        "m": 300, "n": 200, "k": 100, "b_n_major": False, "residual": "row",
    }  # fmt: skip
    traits = calls.traits("gemm_bf16_bias_gelu_sm90")
    product["b_n_major"] = bool(traits.b_n_major)
    product["activation"] = traits.activation.decode()
    assert calls.acme.best(1, **product) is calls.acme.gemm_bf16_bias_gelu_sm90
    for device, other in ((2, {}), (0, {"mask": "none"}), (0, {"depth": 64})):
        with pytest.raises(ValueError, match="problem: expected a kernel of these traits"):
            calls.acme.best(device, **{**problem, **other})


def test_best_names_what_is_no_problem(calls: Calls) -> None:
    for wrong, said in (
        ({"rows": 3}, "rows is no field"),
        ({"struct_size": 3}, "struct_size is no field"),
        ({"family": "attention", "mask": "casual"}, "mask: expected one of"),
        ({"family": "attention", "query_rows": -1}, "problem: expected extents from 0"),
        ({}, "problem: expected family"),
    ):
        with pytest.raises(ValueError, match=said):
            calls.acme.best(**wrong)


def test_a_larger_ragged_batch_has_a_larger_list(calls: Calls) -> None:
    lists = set()
    for rows in (300, 300, 30_000):
        query, out = (array(rows, 1, 128) for _ in range(2))
        key = array(420, 1, 128)
        lse = floats(1, rows)
        offsets = integers(8)
        calls.acme.d128_ragged_causal_bf16(
            query, key, key, out=out, lse=lse, stream=77,
            query_offsets=offsets, key_offsets=offsets,
        )  # fmt: skip
        lists.add(calls.stand_in.launches[-2].parameters[2])
    assert len(lists) == 2


def test_partial_results_have_a_workspace(calls: Calls) -> None:
    """Even shares need one size, splits one that grows with the problem."""
    places: dict[str, set[bytes]] = {
        "decode_d128_bf16": set(),
        "decode_d128_splits_bf16": set(),
    }
    for keys in (500, 500, 90_000):
        for name, found in places.items():
            query, out = array(1, 1, 8, 128), array(1, 1, 8, 128)
            key = array(1, keys, 2, 128)
            lse = floats(1, 8, 1)
            lengths = integers(1)
            more = {"key_lengths": lengths} if "splits" in name else {}
            getattr(calls.acme, name)(query, key, key, out=out, lse=lse, stream=33, **more)
            (launch,) = calls.stand_in.launches[-1:]
            parameters = [row.name for row in shipped_plans()[name].parameters]
            found.add(launch.parameters[parameters.index("partials")])
    assert [len(found) for found in places.values()] == [1, 2]


def test_what_was_prepared_is_launched_again(calls: Calls) -> None:
    query, out = array(1, 300, 2, 128), array(1, 300, 2, 128)
    lse = floats(1, 2, 300)

    def launch(stream: int, scale: float) -> int:
        calls.acme.d128_causal_bf16(
            query, query, query, out=out, lse=lse, softmax_scale=scale, stream=stream
        )
        return len(calls.stand_in.maps)

    of_one = launch(0x90, 0.25)
    assert launch(0x90, 0.25) == of_one
    assert launch(0xA0, 0.25) == 2 * of_one  # its workspace is another
    assert launch(0x90, 0.5) == 3 * of_one
    first, second, third, fourth = calls.stand_in.launches
    assert replace(first, order=0) == replace(second, order=0)
    assert third.stream == 0xA0
    assert len({first.parameters, third.parameters, fourth.parameters}) == 3


def test_each_stream_has_a_workspace(calls: Calls) -> None:
    first, other, legacy = calls.workspace(0x40), calls.workspace(0x50), calls.workspace(0)
    assert len({first, other, legacy}) == 3
    zeroed = calls.stand_in.memsets
    assert calls.workspace(0x40) == first
    assert calls.workspace(1) == legacy
    assert calls.stand_in.memsets == zeroed
    assert all(memset.value == 0 for memset in zeroed)


def test_workspaces_are_zeroed_before_they_are_used(calls: Calls) -> None:
    fresh = type(calls.acme._resources)()
    before, calls.acme._resources = calls.acme._resources, fresh
    try:
        address = calls.workspace(0x60)
    finally:
        calls.acme._resources = before
    (memset,) = calls.stand_in.memsets
    assert memset.pointer <= address < memset.pointer + memset.num_bytes
    assert address % 16 == 0
    assert memset.order < calls.stand_in.launches[0].order


def test_each_graph_has_a_workspace(calls: Calls) -> None:
    eager = calls.workspace(0x70)
    calls.driver.more_set_capture(0x70, 1)
    captured = calls.workspace(0x70)
    assert calls.workspace(0x70) == captured
    calls.driver.more_set_capture(0x70, 2)
    assert calls.workspace(0x70) not in (eager, captured)
    calls.driver.more_set_capture(0, 0)
    assert calls.workspace(0x70) == eager


def test_the_first_launch_may_be_captured(calls: Calls) -> None:
    before, calls.acme._resources = calls.acme._resources, type(calls.acme._resources)()
    try:
        calls.driver.more_set_capture(0x70, 5)
        calls.workspace(0x70)
    finally:
        calls.acme._resources = before
    assert calls.driver.more_mode() == 0


def test_a_thread_without_a_context_gets_one(calls: Calls) -> None:
    found: list[Any] = []

    def work() -> None:
        calls.stand_in.set_current(None, only_this_thread=True)
        found.append(calls.workspace(0x80))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(found) == 1
    assert calls.driver.more_depth() == 0


def test_the_device_is_that_of_the_arrays(calls: Calls) -> None:
    a, b, c, out = (array(64, 64, device=1) for _ in range(4))
    b = FakeArray(b.array.T, device=1)
    calls.acme.gemm_bf16_residual_sm90(a, b, c, out=out, stream=5)
    assert [launch.device for launch in calls.stand_in.launches] == [1]
    assert calls.driver.more_depth() == 0


def test_threads_share_nothing_but_the_kernels(calls: Calls) -> None:
    found: dict[int, set[int]] = {}
    counter = calls.acme._resources.workspace

    def work(stream: int) -> None:
        a, weight, out = array(64, 64), array(64, 64), array(64, 64)
        c = array(64, 64)
        for _ in range(50):
            calls.acme.gemm_bf16_residual_sm90(a, view(weight, 1, 0), c, out=out, stream=stream)
            found.setdefault(stream, set()).add(counter(0, stream, 8))

    threads = [threading.Thread(target=work, args=(0x1000 + 16 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls.stand_in.launches) == 400
    assert all(len(addresses) == 1 for addresses in found.values())
    assert len(set().union(*found.values())) == 8


def test_what_c_refuses_is_a_value_error(calls: Calls) -> None:
    a, weight, c = array(64, 64), array(64, 64), array(64, 64)
    b = view(weight, 1, 0)
    odd = FakeArray(array(65, 64).array.reshape(-1)[4 : 4 + 64 * 64].reshape(64, 64))
    wide = FakeArray(array(64, 68).array[:, :64])
    for arrays, words in (
        ({"a": odd}, "a: "),
        ({"a": wide}, "a: "),
        ({"out": a}, "out: "),
        ({"alpha": float("inf")}, "alpha: "),
    ):
        given = {"a": a, "b": b, "c": c, "out": array(64, 64), "stream": 5, **arrays}
        with pytest.raises(ValueError, match=f"^{words}"):
            calls.acme.gemm_bf16_residual_sm90(**given)
    assert not calls.stand_in.launches


def test_another_architecture_is_refused(calls: Calls) -> None:
    a, c = array(64, 64, device=2), array(64, 64, device=2)
    with pytest.raises(ValueError, match=r"^device: expected"):
        calls.acme.gemm_bf16_residual_sm90(a, FakeArray(a.array.T, 2), c, out=c, stream=5)


def test_errors_of_the_driver_are_runtime_errors(calls: Calls) -> None:
    a, c = array(64, 64), array(64, 64)
    b = view(array(64, 64), 1, 0)
    calls.acme.gemm_bf16_residual_sm90(a, b, c, out=c, stream=5)
    calls.stand_in.fail("cuLaunchKernelEx", 719)
    with pytest.raises(RuntimeError):
        calls.acme.gemm_bf16_residual_sm90(a, b, c, out=c, stream=5)
