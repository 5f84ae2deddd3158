# ruff: noqa: E501 (a message is on the line of its cause)
"""Kernels for fp8 with values of another depth: what is refused, and the kernel's parameters."""

from __future__ import annotations

import sys

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import DESCALES, Arguments, check_arguments
from fa4gen.runtime.attention import AttentionKernel, scalar_values
from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from fa4gen.runtime.tensor_map import describe
from tests.runtime.views import GAP, DriverWithoutMaps, array, changed, packed_values, refused

FP8 = "float8_e4m3fn"


@pytest.fixture
def plan(make_plan):
    return make_plan(arch="sm_100a", dtype="fp8_e4m3", depth=192, value_depth=128, out_dtype="fp16")


def make_arguments(*, dtype=FP8, **changes):
    """Good arguments; each keyword replaces fields of one argument."""
    arguments = Arguments(
        array((2, 100, 8, 192), 1, dtype),
        array((2, 70, 4, 192), 2, dtype),
        array((2, 70, 4, 128), 3, dtype),
        array((2, 100, 8, 128), 4, "float16"),
        array((2, 8, 100), 5, "float32"),
        0.1,
        "bshd",
        *(array((2, 4), 6 + i, "float32") for i in range(3)),
    )
    return changed(arguments, changes)


@pytest.mark.parametrize("dtype", [FP8, "uint8"])
def test_fp8_comes_as_such_or_as_bits(plan, dtype):
    checked = check_arguments(plan, make_arguments(dtype=dtype))
    assert (checked.query.dtype, checked.value.dtype, checked.out.dtype) == (FP8, FP8, "float16")
    assert checked.value.shape == (2, 70, 4, 128)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": {"dtype": "bfloat16"}}, "query: expected float8_e4m3fn, or its bits as uint8 (the config says dtype: fp8_e4m3), got bfloat16"),
        ({"out": {"dtype": "bfloat16"}}, "out: expected float16 (the config says out_dtype: fp16), got bfloat16"),
        ({"out": {"dtype": "uint8"}}, "out: expected float16 (the config says out_dtype: fp16), got uint8"),
        ({"value": {"shape": (2, 70, 4, 192)}}, "value: expected depth 128, got depth 192 in (2, 70, 4, 192)"),
        ({"out": {"shape": (2, 100, 8, 192)}}, "out: expected depth 128, got depth 192 in (2, 100, 8, 192)"),
        ({"value": {"shape": (2, 71, 4, 128)}}, "value: expected the key's shape except for the depth, 128, (2, 70, 4, 128), got (2, 71, 4, 128)"),
        ({"out": {"shape": (2, 99, 8, 128)}}, "out: expected the query's shape except for the depth, 128, (2, 100, 8, 128), got (2, 99, 8, 128)"),
        ({"key": {"strides": (70 * 1536, 1536, 384, 2)}}, "key: expected a stride along depth of 1 bytes: contiguous columns, got 2 bytes"),
        ({"out": {"strides": (102400, 1024, 128, 1)}}, "out: expected a stride along depth of 2 bytes: contiguous columns, got 1 bytes"),
        ({"query_descale": {"dtype": "float64"}}, "query_descale: expected float32, got float64"),
        ({"key_descale": {"shape": (2, 8)}}, "key_descale: expected (batch, key heads) = (2, 4), got shape (2, 8)"),
        ({"key_descale": {"shape": (4,)}}, "key_descale: expected (batch, key heads) = (2, 4), got shape (4,)"),
        ({"value_descale": {"strides": (4, 8)}}, "value_descale: expected a contiguous array, got strides of (4, 8) bytes"),
        ({"query_descale": {"pointer": 6 * GAP + 2}}, f"query_descale: expected an address that is a multiple of 4 bytes, got {6 * GAP + 2:#x}"),
        ({"key_descale": {"pointer": 4 * GAP + 64}}, "out: expected memory of its own, got memory that overlaps the key_descale's"),
        ({"value_descale": {"pointer": 5 * GAP}}, "lse: expected memory of its own, got memory that overlaps the value_descale's"),
    ],
)  # fmt: skip
def test_each_wrong_argument_is_named(plan, change, message):
    assert refused(check_arguments, plan, make_arguments(**change)) == [message]


def test_the_end_of_a_wide_output_counts_for_overlap(plan):
    """The output's elements are wider than the inputs': its last bytes count."""
    end = 4 * GAP + 2 * 100 * 8 * 128 * 2
    check_arguments(plan, make_arguments(query={"pointer": end}))
    assert refused(check_arguments, plan, make_arguments(query={"pointer": end - 16})) == [
        "out: expected memory of its own, got memory that overlaps the query's"
    ]


@pytest.mark.parametrize("name", DESCALES)
def test_kernels_of_16_bits_take_no_scales(make_plan, name):
    def tensor(place):
        return array((1, 5, 2, 128), place, "bfloat16")

    lse = array((1, 2, 5), 5, "float32")
    arguments = Arguments(tensor(1), tensor(2), tensor(3), tensor(4), lse, 0.1, "bshd")
    check_arguments(make_plan(), arguments)
    scale = array((1, 2), 6, "float32")
    assert refused(check_arguments, make_plan(), arguments._replace(**{name: scale})) == [
        f"{name}: expected no {name}, got an array"
    ]


def test_the_kernel_gets_pointers_to_the_scales_and_null(plan):
    checked = check_arguments(plan, make_arguments(key_descale=None))
    schedule = plan_schedule(plan, checked.size, 148)
    values = packed_values(plan, {**scalar_values(checked, schedule), "tile_counter": 77})
    assert [values[name] for name in DESCALES] == [6 * GAP, 0, 8 * GAP]
    assert values["out_row_stride"] == 8 * 128, "in elements of the output"


def test_maps_have_the_depth_of_their_tensor(plan):
    checked = check_arguments(plan, make_arguments(dtype="uint8"))
    for tensor_map in plan.tensor_maps:
        view = checked.tensor(tensor_map.tensor)
        spec = describe(tensor_map, view)
        dims = dict(zip(tensor_map.dims, spec.dims, strict=True))
        assert dims["column"] * dims["panel"] == view.shape[3]
        assert spec.dtype == ("float16" if tensor_map.tensor == "out" else FP8)
        assert spec.box[0] * view.strides[3] == spec.swizzle


def test_groups_of_heads_know_the_bytes_of_keys_and_values(make_plan):
    causal = {"arch": "sm_100a", "mask": "causal", "scheduler": "dynamic"}
    size = ProblemSize(8, 64, 1, 4096, 4096)
    wide = make_plan(**causal, depth=192, value_depth=128)  # 640 bytes a key: 12.8 heads in 32 MB
    assert plan_schedule(wide, size, 148).heads_per_group == 8
    fp8 = make_plan(**causal, dtype="fp8_e4m3", depth=128)  # 256 bytes a key: 32 heads
    assert plan_schedule(fp8, size, 148).heads_per_group == 32


class FakeTorch:
    """The part of torch that the launcher uses to make an output."""

    bfloat16, float16, float32 = "bf", "half", "single"

    class Tensor:
        requires_grad = False
        layout = strided = "strided"

    strided = "strided"

    @staticmethod
    def is_grad_enabled():
        return False

    @staticmethod
    def empty(shape, dtype, device):
        return shape, dtype, device


def test_outputs_have_a_type_of_their_own(monkeypatch):
    from fa4gen.runtime import arrays

    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    like = FakeTorch.Tensor()
    like.device = "cuda:0"
    assert arrays.empty(like, (2, 3), "float16") == ((2, 3), "half", "cuda:0")
    assert arrays.empty(like, (2, 3), "bfloat16") == ((2, 3), "bf", "cuda:0")
    assert arrays.empty(like, (2, 3), "float32") == ((2, 3), "single", "cuda:0")


@pytest.mark.parametrize("call", ["__call__", "prepare"])
def test_scales_are_arrays(plan, call):
    import ml_dtypes
    import numpy as np

    kernel = AttentionKernel(plan, b"never loaded")
    query = np.zeros((1, 5, 2, 192), ml_dtypes.float8_e4m3fn)
    value = np.zeros((1, 5, 2, 128), np.uint8)
    with pytest.raises(ArgumentError, match=r"^key_descale: expected an array"):
        getattr(kernel, call)(query, query, value, key_descale=0.5)
    with pytest.raises(ArgumentError) as caught:
        getattr(kernel, call)(query, query, value, query_descale=np.ones((1, 2), np.float32))
    assert [problem.message for problem in caught.value.problems] == [
        f"{name}: expected memory of a CUDA device, got memory of the CPU"
        for name in ("query", "key", "value", "query_descale")
    ]


def test_kinds_of_maps_that_the_driver_is_asked_for(plan, monkeypatch):
    """TMA has no fp8: it moves bytes."""
    from fa4gen.runtime import tensor_map

    driver = DriverWithoutMaps()
    monkeypatch.setattr(tensor_map, "load_driver", lambda: driver)
    checked = check_arguments(plan, make_arguments())
    for name in ("value_map", "out_map"):
        row = next(row for row in plan.tensor_maps if row.parameter == name)
        with pytest.raises(ArgumentError, match="CUDA_ERROR"):
            tensor_map.encode(describe(row, checked.tensor(row.tensor)))
    assert [asked[0] for asked in driver.asked] == [
        "CU_TENSOR_MAP_DATA_TYPE_UINT8",
        "CU_TENSOR_MAP_DATA_TYPE_FLOAT16",
    ]


LINES = {"shape": (2, 70, 4, 128), "strides": (4 * 128 * 80, 1, 128 * 80, 80)}


@pytest.fixture
def plan_of_lines(make_plan):
    return make_plan(arch="sm_90a", dtype="fp8_e4m3", depth=128, value_major="keys")


def lines(**changes):
    of_keys = {"shape": (2, 70, 4, 128), "strides": (70 * 512, 512, 128, 1)}
    rows = {"shape": (2, 100, 8, 128), "strides": (100 * 1024, 1024, 128, 1)}
    out = {"dtype": "bfloat16", "strides": (100 * 2048, 2048, 256, 2)}
    return make_arguments(query=rows, key=of_keys, value={**LINES, **changes}, out=out)


def test_keys_of_a_column_are_contiguous(plan_of_lines):
    value = check_arguments(plan_of_lines, lines()).value
    spec = describe(plan_of_lines.tensor_map("value"), value)
    assert (spec.dims, spec.strides) == ((70, 128, 4, 2), (80, 128 * 80, 4 * 128 * 80))
    assert (spec.box, spec.swizzle) == ((128, 128, 1, 1), 128)


@pytest.mark.parametrize(
    ("strides", "message"),
    [
        (
            (70 * 512, 512, 128, 1),
            "value: expected a stride along rows of 1 bytes: contiguous keys (the config says value_major: keys), got 512 bytes",
        ),
        (
            (4 * 128 * 72, 1, 128 * 72, 72),
            "value: expected a stride along depth that is a multiple of 16 bytes, from 0 to 1099511627775, got 72 bytes",
        ),
    ],
)
def test_lines_of_keys_that_tma_cannot_read_are_refused(plan_of_lines, strides, message):
    assert message in refused(check_arguments, plan_of_lines, lines(strides=strides))
