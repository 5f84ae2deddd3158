"""The launcher of matrix products as far as it goes without a GPU."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.errors import ArgumentError
from fa4gen.runtime import arrays
from fa4gen.runtime import tensor_map as encoder
from fa4gen.runtime.gemm import GemmKernel
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments, gemm_scalar_values
from fa4gen.runtime.gemm_schedule import plan_gemm_schedule
from fa4gen.runtime.tensor_map import describe_axes
from fa4gen.runtime.tensor_view import TensorView
from tests.runtime.views import GAP, DriverWithoutMaps, gemm_plan, packed_values

PLANS = [
    gemm_plan(arch=arch, residual=residual, a_major=a_major, b_major=b_major, out_dtype=out_dtype)
    for arch in ("sm_90a", "sm_100a")
    for residual in ("none", "row", "column", "matrix")
    for a_major, b_major, out_dtype in (("k", "k", "bf16"), ("m", "n", "fp32"))
]


def view_of(shape, pointer, element_bytes, *, contiguous=-1, padding=0):
    """A view with ``padding`` times 16 bytes after each line, shape's axis ``contiguous`` inner."""
    order = [axis for axis in range(len(shape)) if axis != contiguous % len(shape)]
    strides = [0] * len(shape)
    strides[contiguous] = element_bytes
    step = (-(-shape[contiguous] * element_bytes // 16) + padding) * 16
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    dtype = {2: "bfloat16", 4: "float32"}[element_bytes]
    return TensorView(pointer, tuple(shape), tuple(strides), dtype, 0)


def checked_arguments(plan, batch=2, m=100, n=72, k=40, padding=0):
    size = plan.out_element_bytes
    c_shape = (batch, *plan.c.extents(m, n)) if plan.c.exists else None
    a_inner, b_inner = -1 if plan.a_major == "k" else -2, -2 if plan.b_major == "k" else -1
    return check_gemm_arguments(
        plan,
        GemmArguments(
            view_of((batch, m, k), GAP, 2, contiguous=a_inner, padding=padding),
            view_of((batch, k, n), 2 * GAP, 2, contiguous=b_inner, padding=padding),
            None if c_shape is None else view_of(c_shape, 3 * GAP, size, padding=padding),
            view_of((batch, m, n), 4 * GAP, size, padding=padding),
            1.5,
            -0.5,
        ),
    )


@pytest.mark.parametrize("plan", PLANS)
def test_every_parameter_of_every_plan_has_its_value(plan):
    checked = checked_arguments(plan)
    schedule = plan_gemm_schedule(plan, checked.size, 132)
    values = packed_values(plan, gemm_scalar_values(checked, schedule))
    expected = {"m": 100, "n": 72, "k": 40, "num_tiles": schedule.num_tiles, "alpha": 1.5}
    assert {name: values[name] for name in expected} == expected
    assert values.get("beta") == (None if plan.residual == "none" else -0.5)
    names = {row.name for row in plan.parameters}
    assert ("beta" in names) == ("c_map" in names) == (plan.residual != "none")


extents = st.integers(1, 20)


@given(st.sampled_from(PLANS), st.integers(1, 3), extents, extents, extents, st.integers(0, 2))
def test_maps_address_the_elements_by_the_names_of_their_axes(plan, batch, m, n, k, padding):
    checked = checked_arguments(plan, batch, m, n, k, padding)
    for tensor_map in plan.tensor_maps:
        view, axes = checked.tensor(tensor_map.tensor), checked.axes(tensor_map.tensor)
        spec = describe_axes(tensor_map, view, axes, fallback_pointer=0)
        element = plan.element_bytes if tensor_map.tensor in "ab" else plan.out_element_bytes
        strides = dict(zip(tensor_map.dims, (element, *spec.strides), strict=True))
        assert dict(zip(tensor_map.dims, spec.dims, strict=True)) == dict(
            zip(axes, view.shape, strict=True)
        )
        corners = [{0, extent - 1} for extent in view.shape]
        for place in itertools.product(*corners):
            there = sum(i * strides[axis] for i, axis in zip(place, axes, strict=True))
            assert there == sum(i * step for i, step in zip(place, view.strides, strict=True))
        assert all(stride % 16 == 0 and stride < 2**40 for stride in spec.strides)
        assert len(spec.box) == len(spec.dims) <= 5


@pytest.mark.parametrize("plan", PLANS)
def test_rows_that_begin_within_a_sector_are_fetched_by_128_bytes(plan):
    """Their stride is an odd multiple of 16 bytes; padding of 8 elements of 16 bits is one."""
    for padding in range(4):
        checked = checked_arguments(plan, 1, 100, 72, 40, padding)
        for row in plan.tensor_maps:
            view, axes = checked.tensor(row.tensor), checked.axes(row.tensor)
            spec = describe_axes(row, view, axes, fallback_pointer=0)
            assert spec.l2_promotion == (128 if spec.strides[0] // 16 % 2 else 256)


def test_a_single_row_has_no_stride_to_begin_within_a_sector():
    checked = checked_arguments(PLANS[0], 1, 1, 72, 40)
    a_map = PLANS[0].tensor_maps[0]
    assert checked.tensor("a").strides[1] // 16 % 2
    spec = describe_axes(a_map, checked.tensor("a"), checked.axes("a"), fallback_pointer=0)
    assert (spec.dims[1], spec.l2_promotion) == (1, 256)


@pytest.mark.parametrize("promotion", [128, 256])
def test_the_driver_is_asked_for_the_promotion_of_the_map(promotion, monkeypatch):
    driver = DriverWithoutMaps()
    monkeypatch.setattr(encoder, "load_driver", lambda: driver)
    checked = checked_arguments(PLANS[0])
    spec = describe_axes(
        PLANS[0].tensor_maps[0], checked.tensor("a"), checked.axes("a"), fallback_pointer=0
    )
    with pytest.raises(ArgumentError, match="CUDA_ERROR"):
        encoder.encode(replace(spec, l2_promotion=promotion))
    assert [asked[-2] for asked in driver.asked] == [f"CU_TENSOR_MAP_L2_PROMOTION_L2_{promotion}B"]


@pytest.mark.parametrize("plan", PLANS)
def test_without_k_the_maps_are_of_single_elements(plan):
    checked = checked_arguments(plan, k=0)
    a_map, b_map = (row for row in plan.tensor_maps if row.tensor in ("a", "b"))
    for row in (a_map, b_map):
        spec = describe_axes(
            row, checked.tensor(row.tensor), checked.axes(row.tensor), fallback_pointer=4096
        )
        assert (spec.pointer, spec.dims) == (4096, (1, 1, 1))
        assert all(stride and stride % 16 == 0 for stride in spec.strides)


@pytest.mark.parametrize("call", ["__call__", "prepare"])
def test_arrays_of_the_cpu_are_refused(call):
    kernel = GemmKernel(gemm_plan(dtype="fp16", residual="row"), b"never loaded")
    a, b, c = np.zeros((5, 8), np.float16), np.zeros((8, 16), np.float16), np.zeros(16, np.float16)
    with pytest.raises(ArgumentError) as caught:
        getattr(kernel, call)(a, b, c)
    assert [problem.message for problem in caught.value.problems] == [
        f"{name}: expected memory of a CUDA device, got memory of the CPU" for name in "abc"
    ]


@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_factors_are_looked_at_first(factor):
    kernel = GemmKernel(gemm_plan(dtype="fp16"), b"never loaded")
    with pytest.raises(ArgumentError, match=rf"^{factor}: "):
        kernel(np.zeros((5, 8)), np.zeros((8, 16)), **{factor: float("nan")})


@pytest.mark.parametrize(("out_dtype", "multiple"), [("bf16", 8), ("fp32", 4)])
@pytest.mark.parametrize("columns", [1, 8, 13, 72])
def test_rows_of_a_new_output_are_a_multiple_of_16_bytes(monkeypatch, out_dtype, multiple, columns):
    monkeypatch.setattr(arrays, "empty", lambda _, shape, dtype: np.empty(shape, np.float32))
    kernel = GemmKernel(gemm_plan(out_dtype=out_dtype), b"never loaded")
    out = kernel._new_out(None, (3, 5, columns))
    assert out.shape == (3, 5, columns)
    padded = -(-columns // multiple) * multiple
    assert out.strides == (20 * padded, 4 * padded, 4)


def test_a_kernel_says_what_it_is():
    assert repr(GemmKernel(gemm_plan(), b"")) == "GemmKernel('probe', arch='sm_90a')"
