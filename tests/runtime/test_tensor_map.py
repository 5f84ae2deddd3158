"""Tensor maps address exactly the elements of the tensor, and respect the hardware's limits."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.errors import ArgumentError, MissingCapabilityError
from fa4gen.runtime.device import device_count, load_cupy, load_driver
from fa4gen.runtime.tensor_map import describe, encode
from fa4gen.runtime.tensor_view import TensorView
from tests.runtime.views import make_plan

PLANS = [
    make_plan(depth=depth, cta_group=cta_group, num_kv_stages=1, **epilogue)
    for depth in (64, 96, 128, 192, 256)
    for cta_group in (1, 2)
    for epilogue in ({}, {"epilogue": "tma_store", "overlap_epilogue": False})
]
MAPS = [(plan, tensor_map) for plan in PLANS for tensor_map in plan.tensor_maps]

extents = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))


def view_of(order, sizes, depth, padding=0, pointer=1 << 20):
    step = 2 * depth + 16 * padding
    strides = {}
    for axis in order:
        strides[axis] = step
        step = step * sizes[axis] + 16 * padding
    return TensorView(pointer, (*sizes, depth), (*(strides[i] for i in range(3)), 2), "bfloat16", 0)


@given(st.sampled_from(MAPS), st.permutations(range(3)), extents, st.integers(0, 3))
def test_a_map_addresses_the_tensor(chosen, order, sizes, padding):
    plan, tensor_map = chosen
    view = view_of(order, sizes, plan.depth, padding)
    spec = describe(tensor_map, view)
    strides = dict(zip(tensor_map.dims, (2, *spec.strides), strict=True))
    dims = dict(zip(tensor_map.dims, spec.dims, strict=True))
    assert dims["column"] * dims["panel"] == plan.depth
    assert (dims["batch"], dims["row"], dims["head"]) == sizes
    corner = {"column": dims["column"] - 1, "panel": dims["panel"] - 1}
    for batch, row, head in itertools.product(*map(range, sizes)):
        for place in ({"column": 0, "panel": 0}, corner):
            index = {**place, "batch": batch, "row": row, "head": head}
            address = spec.pointer + sum(index[name] * strides[name] for name in index)
            column = place["panel"] * dims["column"] + place["column"]
            expected = (batch, row, head, column)
            assert address == view.pointer + sum(
                i * step for i, step in zip(expected, view.strides, strict=True)
            )


@given(st.sampled_from(MAPS), st.permutations(range(3)), extents)
def test_a_map_keeps_to_the_limits_of_the_hardware(chosen, order, sizes):
    plan, tensor_map = chosen
    spec = describe(tensor_map, view_of(order, sizes, plan.depth))
    assert len(spec.dims) == len(spec.box) == len(spec.strides) + 1 == 5
    assert all(1 <= extent <= 2**32 for extent in spec.dims)
    assert all(stride % 16 == 0 and 0 < stride < 2**40 for stride in spec.strides)
    assert all(1 <= extent <= 256 for extent in spec.box)
    assert spec.box[0] * plan.element_bytes == spec.swizzle


def test_strides_of_single_elements_are_replaced_by_legal_ones():
    view = TensorView(1 << 20, (1, 1, 1, 128), (7, 0, -5, 2), "bfloat16", 0)
    assert describe(make_plan().tensor_maps[0], view).strides == (128, 128, 128, 128)


@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 4, 3), (2, 4, 0)])
def test_a_tensor_without_elements_gets_a_map_of_one_row(shape):
    plan = make_plan()
    key_map = plan.tensor_maps[1]
    view = TensorView(0, (*shape, 128), (9, 9, 9, 9), "bfloat16", 0)
    spec = describe(key_map, view, fallback_pointer=4096)
    assert spec.pointer == 4096
    assert spec.dims == (64, 1, 2, 1, 1)
    assert spec.strides == (128, 128, 128, 128)


@pytest.fixture
def driver():
    try:
        found = load_driver()
    except MissingCapabilityError as error:
        pytest.skip(f"encoding needs the driver: {error.problems[0].message}")
    if device_count():
        load_cupy().cuda.runtime.memGetInfo()  # as in a launch: there is a context
    return found


@pytest.mark.parametrize(("plan", "tensor_map"), MAPS, ids=lambda x: getattr(x, "name", ""))
def test_the_driver_accepts_every_map(driver, plan, tensor_map):
    spec = describe(tensor_map, view_of((2, 1, 0), (2, 1000, 3), plan.depth))
    encoded = encode(spec)
    assert len(encoded) == 128
    assert any(encoded)


def test_the_driver_accepts_maps_of_single_elements_and_of_none(driver):
    query_map = make_plan().tensor_maps[0]
    for shape in ((1, 1, 1), (2, 0, 3)):
        view = TensorView(1 << 20, (*shape, 128), (7, 0, -5, 2), "bfloat16", 0)
        assert len(encode(describe(query_map, view, fallback_pointer=1 << 20))) == 128


def test_a_refused_map_names_the_tensor(driver):
    view = view_of((2, 1, 0), (2, 10, 3), 128, pointer=(1 << 20) + 8)
    with pytest.raises(ArgumentError, match="query: the driver refuses a tensor map"):
        encode(describe(make_plan().tensor_maps[0], view))
