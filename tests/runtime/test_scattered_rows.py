"""Scattered rows of a product on Hopper: what a call has to pass, and what the kernel gets."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.errors import ArgumentError
from fa4gen.runtime.gemm_arguments import GemmArguments, check_gemm_arguments, gemm_scalar_values
from fa4gen.runtime.gemm_schedule import GemmSize, plan_gemm_schedule
from tests.runtime.views import array, gemm_plan

ROWS, OUT_ROWS, N, K, GROUPS = 100, 130, 72, 256, 5
PLAN = gemm_plan(groups="offsets", out_rows="scattered")


def arguments(**changes: Any) -> GemmArguments:
    found = GemmArguments(
        array((ROWS, K), 1),
        array((GROUPS, K, N), 2, swapped=True),
        None,
        array((OUT_ROWS, N), 4),
        1.0,
        0.0,
        row_offsets=array((GROUPS + 1,), 7, "int32"),
        out_index=array((ROWS,), 8, "int32"),
        row_weights=array((ROWS,), 9, "float32"),
    )
    return found._replace(**changes)


def messages(plan: Any, **changes: Any) -> list[str]:
    with pytest.raises(ArgumentError) as caught:
        check_gemm_arguments(plan, arguments(**changes))
    return [problem.message for problem in caught.value.problems]


def test_the_kernel_gets_the_output_by_its_address() -> None:
    checked = check_gemm_arguments(PLAN, arguments())
    assert checked.size == GemmSize(GROUPS, ROWS, N, K)
    values = gemm_scalar_values(checked, plan_gemm_schedule(PLAN, checked.size, 132))
    given = arguments()
    assert given.out is not None
    assert given.out_index is not None
    assert values["out"] == given.out.pointer
    assert values["out_index"] == given.out_index.pointer
    assert (values["out_row_chunks"], values["out_rows"]) == (N * 2 // 16, OUT_ROWS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": None}, "out: expected an array (out_rows, n), whose rows out_index names, got"),
        ({"out_index": None}, "out_index: expected int32 (m,) (out_rows: scattered), got nothing"),
        ({"row_weights": None}, "row_weights: expected float32 (m,) (out_rows: scattered), got"),
        ({"out_index": array((ROWS,), 8, "int64")}, "out_index: expected int32, got int64"),
        ({"out_index": array((ROWS + 1,), 8, "int32")}, "out_index: expected (m) = (100,), got"),
        ({"row_weights": array((ROWS,), 9, "float32")._replace(strides=(8,))},
         "row_weights: expected contiguous elements at a multiple of 4 bytes"),
        ({"out": array((OUT_ROWS, N + 8), 4)}, "out: expected (out_rows, n) = (130, 72), got"),
        ({"b": array((GROUPS, K, N + 1), 2, swapped=True)},
         "b: expected a multiple of 8: rows of the output are stored by 16 bytes, got 73 columns"),
        ({"out_index": array((ROWS,), 4, "int32")},
         "out: expected memory of its own, got memory that overlaps out_index's"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(changes: dict[str, Any], message: str) -> None:
    assert any(message in one for one in messages(PLAN, **changes))


def test_an_index_is_for_kernels_that_scatter() -> None:
    found = messages(gemm_plan(groups="offsets"), out=array((ROWS, N), 4))
    expected = "out_index: expected no out_index, got an array"
    assert expected in found
