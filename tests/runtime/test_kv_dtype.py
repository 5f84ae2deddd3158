# ruff: noqa: E501 (a message is on the line of its cause)
"""Keys and values of fp8 beside a query of 16 bits: what is refused, parameters and maps.

Also scales of pages."""

from __future__ import annotations

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import scalar_values
from fa4gen.runtime.schedule import plan_schedule
from fa4gen.runtime.tensor_map import describe
from fa4gen.runtime.workspace import workspace_values
from tests.runtime.views import GAP, array, changed, make_plan, packed_values, refused

FP8 = "float8_e4m3fn"


KEYS = {"kv_dtype": "fp8_e4m3", "pack_heads": True}
PLAN = make_plan(**KEYS)
PAGED = make_plan(**KEYS, kv_scale="page", keys="paged", page_size=64)
PREFILL = make_plan(dtype="fp8_e4m3", kv_scale="page", keys="paged", page_size=64)
PAGES = 9


def make_arguments(**changes):
    """Good arguments; each keyword replaces fields of one argument."""
    arguments = Arguments(
        array((2, 1, 8, 128), 1, "bfloat16"),
        array((2, 700, 4, 128), 2, FP8),
        array((2, 700, 4, 128), 3, "uint8"),
        array((2, 1, 8, 128), 4, "bfloat16"),
        array((2, 8, 1), 5, "float32"),
        0.1,
        "bshd",
        None,
        *(array((2, 4), 6 + i, "float32") for i in range(2)),
    )
    return changed(arguments, changes)


def paged_arguments(**changes):
    """Good arguments of two sequences with a scale for each page."""
    pages = {
        "key": array((PAGES, 64, 4, 128), 2, "uint8"),
        "value": array((PAGES, 64, 4, 128), 3, "uint8"),
        "key_descale": array((PAGES, 4), 6, "float32"),
        "value_descale": array((PAGES, 4), 7, "float32"),
        "key_lengths": array((2,), 8, "int32"),
        "page_table": array((2, 4), 10, "int32"),
    }
    return changed(make_arguments(**pages), changes)


def values_of(plan, arguments):
    """Return the parameters of the launch of a call."""
    checked = check_arguments(plan, arguments)
    schedule = plan_schedule(plan, checked.size, 132)
    values = {**scalar_values(checked, schedule), **workspace_values(plan, 9 * GAP)}
    return packed_values(plan, values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": {"dtype": FP8}}, "query: expected bfloat16 (the config says dtype: bf16), got float8_e4m3fn"),
        ({"key": {"dtype": "bfloat16"}}, "key: expected float8_e4m3fn, or its bits as uint8 (the config says kv_dtype: fp8_e4m3), got bfloat16"),
        ({"value": {"dtype": "float16"}}, "value: expected float8_e4m3fn, or its bits as uint8 (the config says kv_dtype: fp8_e4m3), got float16"),
        ({"out": {"dtype": "float16"}}, "out: expected bfloat16 (the config says dtype: bf16), got float16"),
        ({"key": {"strides": (700 * 1024, 1024, 256, 2)}}, "key: expected a stride along depth of 1 bytes: contiguous columns, got 2 bytes"),
        ({"key_descale": {"shape": (2, 8)}}, "key_descale: expected (batch, key heads) = (2, 4), got shape (2, 8)"),
        ({"value_descale": {"dtype": "bfloat16"}}, "value_descale: expected float32, got bfloat16"),
        ({"query_descale": array((2, 4), 8, "float32")}, "query_descale: expected no query_descale, got an array"),
        ({"out": {"pointer": 2 * GAP + 2 * 700 * 4 * 128 - 16}}, "out: expected memory of its own, got memory that overlaps the key's"),
    ],
)  # fmt: skip
def test_each_wrong_argument_is_named(change, message):
    assert refused(check_arguments, PLAN, make_arguments(**change)) == [message]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key_descale": {"shape": (2, 4)}}, "key_descale: expected (pages, key heads) = (9, 4), got shape (2, 4)"),
        ({"value_descale": {"shape": (4, PAGES)}}, "value_descale: expected (pages, key heads) = (9, 4), got shape (4, 9)"),
        ({"value_descale": {"strides": (32, 4)}}, "value_descale: expected a contiguous array, got strides of (32, 4) bytes"),
        ({"key_descale": {"dtype": "float16"}}, "key_descale: expected float32, got float16"),
        ({"key_descale": {"pointer": 6 * GAP + 2}}, "key_descale: expected an address that is a multiple of 4 bytes, got 0x600000002"),
        ({"query_descale": array((PAGES, 4), 11, "float32")}, "query_descale: expected no query_descale, got an array"),
    ],
)  # fmt: skip
def test_each_wrong_scale_of_pages_is_named(change, message):
    assert refused(check_arguments, PAGED, paged_arguments(**change)) == [message]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_descale": {"shape": (PAGES, 4)}}, "query_descale: expected (batch, key heads) = (2, 4), got shape (9, 4)"),
        ({"key_descale": {"shape": (2, 4)}}, "key_descale: expected (pages, key heads) = (9, 4), got shape (2, 4)"),
        ({"value_descale": {"shape": (2, 4)}}, "value_descale: expected (pages, key heads) = (9, 4), got shape (2, 4)"),
    ],
)  # fmt: skip
def test_queries_of_prefill_have_no_scales_of_pages(change, message):
    query, scale = array((2, 1, 8, 128), 1, FP8), array((2, 4), 11, "float32")
    arguments = paged_arguments(query=query, query_descale=scale)
    check_arguments(PREFILL, arguments)
    assert refused(check_arguments, PREFILL, changed(arguments, change)) == [message]


def test_the_remedy_names_the_type():
    scale = array((2, 4), 8, "float32")
    with pytest.raises(ArgumentError, match=r"the query of this kernel is bf16"):
        check_arguments(PLAN, make_arguments(query_descale=scale))


def test_memory_right_past_the_keys_is_free():
    """Their elements have one byte, not the two of the query's."""
    check_arguments(PLAN, make_arguments(out={"pointer": 2 * GAP + 2 * 700 * 4 * 128}))


def test_the_kernel_gets_its_scales_and_maps_of_bytes():
    checked = check_arguments(PLAN, make_arguments(value_descale=None))
    assert (checked.query.dtype, checked.key.dtype, checked.value.dtype) == ("bfloat16", FP8, FP8)
    values = values_of(PLAN, make_arguments(value_descale=None))
    assert (values["key_descale"], values["value_descale"]) == (6 * GAP, 0)
    for tensor_map in PLAN.tensor_maps:
        spec = describe(tensor_map, checked.tensor(tensor_map.tensor))
        assert spec.dtype == FP8
        assert spec.box[0] == spec.swizzle == 128


@pytest.mark.parametrize("left_out", [None, "key_descale", "value_descale"])
def test_the_kernel_gets_the_addresses_of_scales_of_pages(left_out):
    arguments = paged_arguments(**({} if left_out is None else {left_out: None}))
    values = values_of(PAGED, arguments)
    for place, name in ((6, "key_descale"), (7, "value_descale")):
        assert values[name] == (0 if name == left_out else place * GAP)
