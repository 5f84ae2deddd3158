"""Values that have to be columns of the keys: what is accepted, and what is refused."""

from __future__ import annotations

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.tensor_view import TensorView

GAP = 1 << 32
SHAPES = {
    "query": (2, 1, 128, 576), "key": (2, 700, 1, 576), "value": (2, 700, 1, 512),
    "out": (2, 1, 128, 512),
}  # fmt: skip


@pytest.fixture
def plan(make_plan):
    return make_plan(depth=576, value_depth=512, pack_heads=True)


def make_arguments(**value):
    """Good arguments, but for these fields of the value."""
    views = {}
    for place, (name, (batch, rows, heads, depth)) in enumerate(SHAPES.items(), 1):
        stride = 576 if name == "value" else depth
        strides = (2 * rows * heads * stride, 2 * heads * stride, 2 * stride, 2)
        pointer = (2 if name == "value" else place) * GAP
        views[name] = TensorView(pointer, (batch, rows, heads, depth), strides, "bfloat16", 0)
    views["value"] = views["value"]._replace(**value)
    lse = TensorView(9 * GAP, (2, 128, 1), (512, 4, 4), "float32", 0)
    return Arguments(**views, lse=lse, softmax_scale=0.1, layout="bshd")


def test_the_first_columns_of_the_keys_are_accepted(plan):
    checked = check_arguments(plan, make_arguments())
    assert checked.value.pointer == checked.key.pointer
    # There is one head: its stride does not matter.
    check_arguments(plan, make_arguments(strides=(806400, 1152, 1024, 2)))


@pytest.mark.parametrize(
    "change",
    [
        {"pointer": 7 * GAP},
        {"pointer": 2 * GAP + 128},
        {"strides": (716800, 1024, 1024, 2)},
        {"strides": (0, 1152, 1152, 2)},
    ],
)
def test_other_memory_is_refused(plan, change):
    with pytest.raises(
        ArgumentError, match="value: expected the first 512 columns of key"
    ) as raised:
        check_arguments(plan, make_arguments(**change))
    assert "pass key[..., :512]" in str(raised.value)


def test_other_kernels_take_values_anywhere(make_plan):
    views = {}
    for place, name in enumerate(("query", "key", "value", "out"), 1):
        shape = (2, 700, 4, 128)
        strides = (2 * 700 * 4 * 128, 2 * 4 * 128, 2 * 128, 2)
        views[name] = TensorView(place * GAP, shape, strides, "bfloat16", 0)
    lse = TensorView(9 * GAP, (2, 4, 700), (11200, 2800, 4), "float32", 0)
    check_arguments(make_plan(), Arguments(**views, lse=lse, softmax_scale=0.1, layout="bshd"))
