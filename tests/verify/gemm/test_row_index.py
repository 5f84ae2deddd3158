"""Indices of gathered rows: what is drawn, what is NaN, and the same product in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.verify.gemm.cases import emulated_cases
from fa4gen.verify.gemm.inputs import make_inputs
from fa4gen.verify.gemm.row_index import UNNAMED, draw_index, moved, taken

if TYPE_CHECKING:
    from fa4gen.verify.gemm.case import GemmCase

SCALES = {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}}


def plan_of(**keys: Any) -> Any:
    data = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "rows": "gathered", **keys}
    return build_plan(load_mapping(data, "gathered").config)


def inputs_of(plan: Any, case: GemmCase) -> Any:
    return make_inputs(case, plan, np.random.default_rng(1))


def test_a_mixed_index_repeats_rows_and_names_none() -> None:
    rows, index = draw_index("mixed", (2, 400), np.random.default_rng(0))
    assert rows < 400
    missing = (index < 0) | (index >= rows)
    assert 0 < missing.sum() < 200
    assert {-1, rows} < set(index[missing].tolist())
    assert (np.unique(index[~missing], return_counts=True)[1] > 1).any()


def test_a_permutation_names_each_row_once() -> None:
    rows, index = draw_index("permutation", (2, 40), np.random.default_rng(0))
    assert rows == 40 + UNNAMED
    assert all(len(set(own.tolist())) == 40 for own in index)
    assert index[0].tolist() != index[1].tolist()


def test_rows_are_found_where_they_were_moved() -> None:
    values = np.arange(24, dtype=np.float32).reshape(1, 6, 4)
    index = np.array([[3, 0, -1, 7, 4, 8]], np.int32)
    found = moved(values, 8, index, np.array([[True, True, True, True, False, True]]))
    assert np.isnan(found[0, [1, 2, 4, 5, 6]]).all()
    back = taken(found, index)
    np.testing.assert_array_equal(back[0, [0, 1, 3]], values[0, [0, 1, 3]])
    assert not back[0, [2, 5]].any(), "rows of zeros"


@pytest.mark.parametrize("keys", [{}, {"groups": "offsets"}, {"groups": "masked"}, SCALES])
def test_what_no_index_names_is_nan(keys: dict[str, Any]) -> None:
    plan = plan_of(**keys)
    for case in emulated_cases(plan):
        if case.alpha == 0 or case.data in ("nan_groups", "nan_scales") or case.m == 0:
            continue
        if plan.groups and not case.counts:
            continue
        inputs = inputs_of(plan, case)
        counts = np.ones(inputs.out_rows, np.bool_)
        if inputs.groups is not None:
            counts = ~inputs.groups.rows_of_none()
        in_order = inputs.in_order
        assert in_order.a.shape[:2] == inputs.out_rows
        if inputs.groups is None:
            assert not np.isnan(in_order.a).any(), case
        named = set(np.broadcast_to(inputs.row_index, inputs.out_rows)[counts].tolist())
        unread = [row for row in range(inputs.a.shape[1]) if row not in named]
        assert np.isnan(inputs.a[:, unread]).all(), case


def test_every_kind_has_a_case() -> None:
    kinds = {case.index for case in emulated_cases(plan_of())}
    assert kinds == {"mixed", "permutation", "one_row", "absent", "no_rows"}
    assert {case.index for case in emulated_cases(plan_of(rows="contiguous"))} == {"mixed"}
