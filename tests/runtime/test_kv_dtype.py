# ruff: noqa: E501 (a message is on the line of its cause)
"""Keys and values of fp8 beside a query of 16 bits: what is refused, parameters and maps."""

from __future__ import annotations

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.arguments import Arguments, check_arguments
from fa4gen.runtime.attention import scalar_values
from fa4gen.runtime.schedule import plan_schedule
from fa4gen.runtime.tensor_map import describe
from fa4gen.runtime.workspace import workspace_values
from tests.runtime.views import GAP, array, changed, packed_values, refused

FP8 = "float8_e4m3fn"


@pytest.fixture
def plan(make_plan):
    return make_plan(dtype="bf16", kv_dtype="fp8_e4m3", depth=128, pack_heads=True)


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
def test_each_wrong_argument_is_named(plan, change, message):
    assert refused(check_arguments, plan, make_arguments(**change)) == [message]


def test_the_remedy_names_the_type(plan):
    scale = array((2, 4), 8, "float32")
    with pytest.raises(ArgumentError, match=r"the query of this kernel is bf16"):
        check_arguments(plan, make_arguments(query_descale=scale))


def test_memory_right_past_the_keys_is_free(plan):
    """Their elements have one byte, not the two of the query's."""
    check_arguments(plan, make_arguments(out={"pointer": 2 * GAP + 2 * 700 * 4 * 128}))


def test_the_kernel_gets_its_scales_and_maps_of_bytes(plan):
    checked = check_arguments(plan, make_arguments(value_descale=None))
    assert (checked.query.dtype, checked.key.dtype, checked.value.dtype) == ("bfloat16", FP8, FP8)
    schedule = plan_schedule(plan, checked.size, 132)
    values = packed_values(
        plan, {**scalar_values(checked, schedule), **workspace_values(plan, 9 * GAP)}
    )
    assert (values["key_descale"], values["value_descale"]) == (6 * GAP, 0)
    for tensor_map in plan.tensor_maps:
        spec = describe(tensor_map, checked.tensor(tensor_map.tensor))
        assert spec.dtype == FP8
        assert spec.box[0] == spec.swizzle == 128
