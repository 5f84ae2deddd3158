# ruff: noqa: E501 (a message is on the line of its cause)
"""Scales of pages: what is refused, and what the kernel gets."""

from __future__ import annotations

import pytest

from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import scalar_values
from fa4gen.runtime.schedule import plan_schedule
from fa4gen.runtime.workspace import workspace_values
from tests.runtime.views import GAP, array, changed, packed_values, refused

PAGES, HEADS = 9, 4


@pytest.fixture
def plan(make_plan):
    return make_plan(
        dtype="bf16", kv_dtype="fp8_e4m3", kv_scale="page", depth=128, pack_heads=True,
        keys="paged", page_size=64,
    )  # fmt: skip


def make_arguments(**changes):
    """Good arguments of two sequences; each keyword replaces one, or fields of it."""
    arguments = Arguments(
        array((2, 1, 8, 128), 1, "bfloat16"),
        array((PAGES, 64, HEADS, 128), 2, "uint8"),
        array((PAGES, 64, HEADS, 128), 3, "uint8"),
        array((2, 1, 8, 128), 4, "bfloat16"),
        array((2, 8, 1), 5, "float32"),
        0.1,
        "bshd",
        key_descale=array((PAGES, HEADS), 6, "float32"),
        value_descale=array((PAGES, HEADS), 7, "float32"),
        key_lengths=array((2,), 8, "int32"),
        page_table=array((2, 4), 10, "int32"),
    )
    return changed(arguments, changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key_descale": {"shape": (2, HEADS)}}, "key_descale: expected (pages, key heads) = (9, 4), got shape (2, 4)"),
        ({"value_descale": {"shape": (HEADS, PAGES)}}, "value_descale: expected (pages, key heads) = (9, 4), got shape (4, 9)"),
        ({"value_descale": {"strides": (32, 4)}}, "value_descale: expected a contiguous array, got strides of (32, 4) bytes"),
        ({"key_descale": {"dtype": "float16"}}, "key_descale: expected float32, got float16"),
        ({"key_descale": {"device": 1}}, "key_descale: expected the query's device, 0, got device 1"),
        ({"key_descale": {"pointer": 6 * GAP + 2}}, "key_descale: expected an address that is a multiple of 4 bytes, got 0x600000002"),
        ({"query_descale": array((PAGES, HEADS), 11, "float32")}, "query_descale: expected no query_descale, got an array"),
    ],
)  # fmt: skip
def test_each_wrong_argument_is_named(plan, change, message):
    assert refused(check_arguments, plan, make_arguments(**change)) == [message]


@pytest.mark.parametrize("left_out", [None, "key_descale", "value_descale"])
def test_the_kernel_gets_their_addresses(plan, left_out):
    arguments = make_arguments(**({} if left_out is None else {left_out: None}))
    checked = check_arguments(plan, arguments)
    schedule = plan_schedule(plan, checked.size, 132)
    values = packed_values(
        plan, {**scalar_values(checked, schedule), **workspace_values(plan, 9 * GAP)}
    )
    for place, name in ((6, "key_descale"), (7, "value_descale")):
        assert values[name] == (0 if name == left_out else place * GAP)
