# ruff: noqa: E501 (a message is on the line of its cause)
"""Every wrong argument is refused by a message that names it, what was expected and what was given."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import (
    Arguments,
    as_scale,
    check_arguments,
    check_layout,
)
from fa4gen.runtime.tensor_view import TensorView
from tests.runtime.views import GAP, array, changed, make_plan, refused

PLAN = make_plan()
PLAN_WITHOUT_LSE = make_plan(lse=False)


def make_arguments(batch=2, rows=100, keys=70, heads=8, key_heads=2, depth=128, **changes):
    """Good arguments; each keyword after the sizes replaces fields of one argument."""
    query = array((batch, rows, heads, depth), 1)
    key = array((batch, keys, key_heads, depth), 2)
    value = array((batch, keys, key_heads, depth), 3)
    out = array((batch, rows, heads, depth), 4)
    lse = array((batch, heads, rows), 5, "float32")
    arguments = Arguments(query, key, value, out, lse, 0.1, "bshd")
    return changed(arguments, changes)


def refusal(arguments, plan=PLAN):
    return refused(check_arguments, plan, arguments)


def test_good_arguments_pass():
    checked = check_arguments(PLAN, make_arguments())
    assert checked.size.batch == 2
    assert checked.size.query_rows == 100
    assert checked.size.key_rows == 70
    assert checked.size.query_heads == 8
    assert checked.size.heads_per_key_head == 4
    assert checked.tensor("value") is checked.value


def test_both_layouts_of_the_same_memory_are_the_same_problem():
    arguments = make_arguments()
    swapped = Arguments(
        *(
            view._replace(
                shape=tuple(view.shape[i] for i in (0, 2, 1, 3)),
                strides=tuple(view.strides[i] for i in (0, 2, 1, 3)),
            )
            for view in arguments[:4]
        ),
        arguments.lse,
        arguments.softmax_scale,
        "bhsd",
    )
    assert check_arguments(PLAN, swapped) == check_arguments(PLAN, arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": {"shape": (2, 100, 1024)}}, "query: expected 4 axes (batch, rows, heads, depth), got 3 axes (2, 100, 1024)"),
        ({"key": {"dtype": "float16"}}, "key: expected bfloat16 (the config says dtype: bf16), got float16"),
        ({"value": {"dtype": "float32"}}, "value: expected bfloat16 (the config says dtype: bf16), got float32"),
        ({"value": {"device": 1}}, "value: expected the query's device, 0, got device 1"),
        ({"value": {"device": -1}}, "value: expected memory of a CUDA device, got memory of the CPU"),
        ({"key": {"shape": (3, 70, 2, 128)}, "value": {"shape": (3, 70, 2, 128)}}, "key: expected the query's batch, 2, got batch 3"),
        ({"value": {"shape": (2, 71, 2, 128)}}, "value: expected the key's shape, (2, 70, 2, 128), got (2, 71, 2, 128)"),
        ({"out": {"shape": (2, 99, 8, 128)}}, "out: expected the query's shape, (2, 100, 8, 128), got (2, 99, 8, 128)"),
        ({"query": {"pointer": GAP + 8}}, f"query: expected an address that is a multiple of 16 bytes, got {GAP + 8:#x}"),
        ({"key": {"strides": (70 * 512, 512, 256, 4)}}, "key: expected a stride along depth of 2 bytes: contiguous columns, got 4 bytes"),
        ({"key": {"strides": (70 * 520 + 16, 520, 256, 2)}}, "key: expected a stride along rows that is a multiple of 16 bytes, from 0 to 1099511627775, got 520 bytes"),
        ({"value": {"strides": (70 * 512, -512, 256, 2)}}, "value: expected a stride along rows that is a multiple of 16 bytes, from 0 to 1099511627775, got -512 bytes"),
        ({"value": {"strides": (1 << 40, 512, 256, 2)}}, f"value: expected a stride along batch that is a multiple of 16 bytes, from 0 to 1099511627775, got {1 << 40} bytes"),
        ({"out": {"strides": (100 * 2048, 2048, 0, 2)}}, "out: expected elements that do not overlap, got strides of (204800, 2048, 0, 2) bytes"),
        ({"out": {"strides": (100 * 2048, 2048, 128, 2)}}, "out: expected elements that do not overlap, got strides of (204800, 2048, 128, 2) bytes"),
        ({"out": {"pointer": 1 * GAP}}, "out: expected memory of its own, got memory that overlaps the query's"),
        ({"out": {"pointer": 2 * GAP + 16}}, "out: expected memory of its own, got memory that overlaps the key's"),
        ({"lse": {"pointer": 4 * GAP + 4}}, "lse: expected memory of its own, got memory that overlaps the out's"),
        ({"lse": {"dtype": "float64"}}, "lse: expected float32, got float64"),
        ({"lse": {"shape": (2, 100, 8)}}, "lse: expected (batch, query heads, query rows) = (2, 8, 100), got shape (2, 100, 8)"),
        ({"lse": {"strides": (3200, 4, 32)}}, "lse: expected a contiguous array, got strides of (3200, 4, 32) bytes"),
        ({"lse": {"pointer": 5 * GAP + 2}}, f"lse: expected an address that is a multiple of 4 bytes, got {5 * GAP + 2:#x}"),
        ({"lse": None}, "lse: expected float32 (2, 8, 100), got nothing"),
        ({"softmax_scale": 0.0}, "softmax_scale: expected a finite number above 0, got 0.0"),
        ({"softmax_scale": -1.0}, "softmax_scale: expected a finite number above 0, got -1.0"),
        ({"softmax_scale": math.nan}, "softmax_scale: expected a finite number above 0, got nan"),
        ({"softmax_scale": math.inf}, "softmax_scale: expected a finite number above 0, got inf"),
        ({"softmax_scale": 1e-60}, "softmax_scale: expected a number that float32 holds, got 1e-60"),
    ],
)  # fmt: skip
def test_each_wrong_argument_is_named(change, message):
    assert refusal(make_arguments(**change)) == [message]


def test_depth_and_heads():
    assert refusal(make_arguments(depth=64)) == [
        "query: expected depth 128, got depth 64 in (2, 100, 8, 64)",
        "key: expected depth 128, got depth 64 in (2, 70, 2, 64)",
        "value: expected depth 128, got depth 64 in (2, 70, 2, 64)",
        "out: expected depth 128, got depth 64 in (2, 100, 8, 64)",
    ]
    assert refusal(make_arguments(key_heads=3)) == [
        "key: expected a number of heads that divides the query's 8, got 3 heads"
    ]
    assert refusal(make_arguments(key_heads=0)) == [
        "key: expected a number of heads that divides the query's 8, got 0 heads"
    ]


def test_messages_show_shapes_in_the_callers_order():
    views = [
        array((2, heads, rows, 128), i)
        for i, (heads, rows) in enumerate([(8, 100), (2, 70), (2, 71), (8, 100)], start=1)
    ]
    lse = make_arguments().lse
    assert refusal(Arguments(*views, lse, 0.1, "bhsd")) == [
        "value: expected the key's shape, (2, 2, 70, 128), got (2, 2, 71, 128)"
    ]


def test_everything_that_is_wrong_is_said_at_once():
    arguments = make_arguments(
        key={"dtype": "float16"}, lse={"dtype": "float16"}, softmax_scale=-1.0
    )
    assert len(refusal(arguments)) == 3


def test_a_kernel_without_lse_takes_none():
    good = make_arguments()
    assert refusal(good, PLAN_WITHOUT_LSE) == ["lse: expected no lse, got an array"]
    assert check_arguments(PLAN_WITHOUT_LSE, good._replace(lse=None)).lse is None


def test_numbers_that_a_launch_raises_share_memory_with_nothing():
    plan = make_plan(max_logits=True)
    good = array((8,), 9, "float32")
    arguments = make_arguments()
    check_arguments(plan, arguments._replace(tensors=(("max_logits", good),)))
    assert refusal(arguments, plan) == [
        "max_logits: expected float32 (query heads) = (8,), got nothing"
    ]
    for other, name in ((arguments.query, "query"), (arguments.lse, "lse")):
        same = good._replace(pointer=other.pointer)
        (message,) = refusal(arguments._replace(tensors=(("max_logits", same),)), plan)
        assert {"max_logits", name} <= set(re.findall(r"\w+", message))


PLAN_WITH_SINKS = make_plan(sinks=True)


def sinks_at(**change):
    return array((8,), 6, "float32")._replace(**change)


def test_a_kernel_with_sinks_takes_one_for_each_query_head():
    good = make_arguments()._replace(sinks=sinks_at())
    assert check_arguments(PLAN_WITH_SINKS, good).sinks is good.sinks
    assert refusal(good) == ["sinks: expected no sinks, got an array"]
    assert refusal(make_arguments(), PLAN_WITH_SINKS) == [
        "sinks: expected float32 (query heads) = (8,), got nothing"
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": (2,)}, "sinks: expected (query heads) = (8,), got shape (2,)"),
        ({"dtype": "bfloat16"}, "sinks: expected float32, got bfloat16"),
        (
            {"pointer": 4 * GAP},
            "out: expected memory of its own, got memory that overlaps the sinks's",
        ),
    ],
)
def test_each_wrong_sink_is_named(change, message):
    arguments = make_arguments()._replace(sinks=sinks_at(**change))
    assert refusal(arguments, PLAN_WITH_SINKS) == [message]


def test_a_query_on_the_cpu_is_the_only_thing_said():
    query = make_arguments().query._replace(device=-1)
    arguments = make_arguments()._replace(query=query, out=None, lse=None)
    assert refusal(arguments) == ["query: expected memory of a CUDA device, got memory of the CPU"]


@pytest.mark.parametrize(
    "sizes",
    [
        {"batch": 0},
        {"rows": 0},
        {"keys": 0},
        {"heads": 0, "key_heads": 0},
        {"heads": 0, "key_heads": 2},
    ],
)
def test_problems_without_elements_pass_whatever_their_addresses(sizes):
    arguments = make_arguments(**sizes)
    empties = {
        name: getattr(arguments, name)._replace(pointer=0)
        for name in ("query", "key", "value", "out")
        if 0 in getattr(arguments, name).shape
    }
    assert empties
    check_arguments(PLAN, arguments._replace(**empties))


def test_an_axis_of_one_element_may_have_any_stride():
    odd = (7, -3, 5, 2)
    strides = {"query": {"strides": odd}, "out": {"strides": odd}}
    one = make_arguments(batch=1, rows=1, keys=1, heads=1, key_heads=1, **strides)
    assert check_arguments(PLAN, one).size.query_rows == 1
    assert (
        "query"
        in refusal(make_arguments(batch=1, rows=2, keys=1, heads=1, key_heads=1, **strides))[0]
    )


def test_inputs_may_be_broadcast_and_share_memory():
    key = make_arguments().key._replace(strides=(0, 512, 0, 2))
    checked = check_arguments(PLAN, make_arguments()._replace(key=key, value=key))
    assert checked.key == checked.value


def test_views_interleaved_in_one_buffer_pass():
    """Query, key, value and output next to each other in one row: a packed projection."""
    row = 4 * 8 * 256
    views = [
        TensorView(GAP + i * 8 * 256, (2, 100, 8, 128), (100 * row, row, 256, 2), "bfloat16", 0)
        for i in range(4)
    ]
    lse = make_arguments().lse
    check_arguments(PLAN, Arguments(*views, lse, 0.1, "bshd"))
    shifted = views[3]._replace(pointer=views[3].pointer - 16)
    assert refusal(Arguments(*views[:3], shifted, lse, 0.1, "bshd")) == [
        "out: expected memory of its own, got memory that overlaps the value's"
    ]


def test_extents_beyond_32_bits_are_refused():
    big = 2**31
    arguments = make_arguments(batch=1, rows=big, keys=1, heads=1, key_heads=1)
    assert refusal(arguments)[0].startswith("query: expected extents of at most 2147483647")
    arguments = make_arguments(batch=1, rows=1, keys=big - 2, heads=1, key_heads=1)
    assert refusal(arguments)[0].startswith("key: expected at most ")


@pytest.mark.parametrize("layout", ["BSHD", "sbhd", "", None])
def test_unknown_layouts_are_refused(layout):
    with pytest.raises(ArgumentError, match='layout: expected "bshd" or "bhsd"'):
        check_layout(layout)


@pytest.mark.parametrize("scale", ["0.1", True, None, [1.0], 1j])
def test_scales_that_are_no_numbers_are_refused(scale):
    with pytest.raises(ArgumentError, match="softmax_scale: expected a finite number above 0"):
        as_scale(scale)


@given(
    st.permutations(["batch", "rows", "heads"]),
    st.integers(1, 4),
    st.integers(1, 300),
    st.integers(1, 8),
    st.integers(0, 5),
)
def test_any_transposed_padded_memory_order_passes(order, batch, rows, heads, padding):
    """Strides decide: whatever order the axes have in memory, padded or not."""
    extents = {"batch": batch, "rows": rows, "heads": heads}
    step = 256 + 16 * padding
    strides = {}
    for axis in order:
        strides[axis] = step
        step = step * extents[axis] + 16 * padding
    memory = {"shape": (batch, rows, heads, 128), "strides": (strides["batch"], strides["rows"], strides["heads"], 2)}  # fmt: skip
    arguments = make_arguments(
        batch, rows, rows, heads, heads, query=memory, key=memory, value=memory, out=memory
    )
    checked = check_arguments(PLAN, arguments)
    assert checked.out.strides == memory["strides"]


def test_heads_that_share_a_tile_are_of_one_key_head():
    plan = make_plan(tile_heads=4)
    assert check_arguments(plan, make_arguments()).size.heads_per_key_head == 4
    assert refusal(make_arguments(key_heads=4), plan) == [
        "key: expected each with a multiple of 4 of the query's (config: tile_heads), got 4 heads "
        "to the query's 8"
    ]
