"""Arguments of merging kernels: what is accepted, and what each refusal says."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.runtime.merge_arguments import MergeArguments, check_merge_arguments
from tests.runtime.views import array, refused

KEYS = {"kernel": "merge", "arch": "sm_90a", "dtype": "bf16", "depth": 128}
PLAN: Any = build_plan(load_mapping(KEYS, "kernel").config)
WITHOUT_LSE: Any = build_plan(load_mapping({**KEYS, "lse": False}, "kernel").config)
GOOD = MergeArguments(
    array((3, 2, 10, 4, 128), 1),
    array((3, 2, 4, 10), 2, "float32"),
    array((2, 10, 4, 128), 3),
    array((2, 4, 10), 4, "float32"),
)


def test_good_arguments_become_parameters() -> None:
    values = check_merge_arguments(PLAN, GOOD).values()
    assert set(values) == {row.name for row in PLAN.parameters}
    assert (values["num_parts"], values["batch"], values["rows"], values["heads"]) == (3, 2, 10, 4)
    assert values["parts_part_stride"] == 2 * 10 * 4 * 128
    assert values["part_lse_head_stride"] == 10
    assert values["out_row_stride"] == 4 * 128


def test_ragged_batches_have_no_axis_of_batches() -> None:
    arguments = MergeArguments(
        array((3, 10, 4, 128), 1), array((3, 4, 10), 2, "float32"),
        array((10, 4, 128), 3), array((4, 10), 4, "float32"),
    )  # fmt: skip
    values = check_merge_arguments(PLAN, arguments).values()
    assert (values["batch"], values["rows"], values["part_lse_row_stride"]) == (1, 10, 1)


def part_of(number: int, view: Any) -> Any:
    pointer = view.pointer + number * view.strides[0]
    return view._replace(pointer=pointer, shape=view.shape[1:], strides=view.strides[1:])


def test_outputs_may_be_parts_and_nothing_else() -> None:
    same = GOOD._replace(out=part_of(2, GOOD.parts), lse=part_of(0, GOOD.part_lse))
    check_merge_arguments(PLAN, same)
    between = part_of(2, GOOD.parts)
    between = between._replace(pointer=between.pointer - 128 * 2)
    assert refused(check_merge_arguments, PLAN, GOOD._replace(out=between)) == [
        "out: expected memory of its own, got memory that overlaps the parts's"
    ]
    one = GOOD.parts._replace(strides=(0, *GOOD.parts.strides[1:]))
    (message,) = refused(check_merge_arguments, PLAN, GOOD._replace(parts=one, out=part_of(0, one)))
    assert "elements that do not overlap, where out is a part" in message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"part_lse": array((3, 2, 10, 4), 2, "float32")},
         "part_lse: expected (part, batch, head, row) = (3, 2, 4, 10), got shape (3, 2, 10, 4)"),
        ({"out": array((2, 10, 4, 64), 3)},
         "out: expected (batch, row, head, column) = (2, 10, 4, 128), got shape (2, 10, 4, 64)"),
        ({"lse": array((2, 4, 10), 4, "bfloat16")}, "lse: expected float32, got bfloat16"),
        ({"lse": None}, "lse: expected an array (2, 4, 10), got nothing"),
        ({"parts": array((3, 2, 10, 4, 128), 1, "float32")},
         "parts: expected bfloat16 (the config says dtype: bf16), got float32"),
        ({"parts": array((10, 128), 1)},
         "parts: expected (parts, batch, rows, heads, depth), or without the batch, got 2 axes"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(change: Any, message: str) -> None:
    assert message in refused(check_merge_arguments, PLAN, GOOD._replace(**change))


def test_a_kernel_without_log_sum_exps_takes_none() -> None:
    (message,) = refused(check_merge_arguments, WITHOUT_LSE, GOOD)
    assert message == "lse: expected no lse, got an array"
    check_merge_arguments(WITHOUT_LSE, GOOD._replace(lse=None))


def test_there_are_no_more_parts_than_32_bits_number() -> None:
    """One part counted 2^31 times is refused, as the C launcher refuses it."""
    parts = GOOD.parts._replace(shape=(2**31, *GOOD.parts.shape[1:]))
    parts = parts._replace(strides=(0, *parts.strides[1:]))
    lse = GOOD.part_lse._replace(shape=(2**31, *GOOD.part_lse.shape[1:]))
    lse = lse._replace(strides=(0, *lse.strides[1:]))
    assert refused(check_merge_arguments, PLAN, GOOD._replace(parts=parts, part_lse=lse)) == [
        "parts: expected at most 2147483647, got 2147483648 of them"
    ]
