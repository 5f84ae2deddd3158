"""The float64 reference of merging: its definition, its intervals, and what they must not allow."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify.errors import element_shares
from fa4gen.verify.merge.reference import merged
from fa4gen.verify.rounding import round_to

RNG = np.random.default_rng(5)
PARTS = RNG.standard_normal((3, 2, 5, 4, 8)).astype(np.float32)
LSE = RNG.normal(0, 3, (3, 2, 4, 5)).astype(np.float32)


def test_parts_of_a_softmax_merge_to_the_softmax() -> None:
    scores, values = RNG.standard_normal((30,)), RNG.standard_normal((30, 8))
    pieces = [slice(0, 7), slice(7, 8), slice(8, 30)]
    parts = np.stack([np.exp(scores[p]) @ values[p] / np.exp(scores[p]).sum() for p in pieces])
    lse = np.array([np.log(np.exp(scores[p]).sum()) for p in pieces])
    shaped = parts[:, None, None, None], lse[:, None, None, None]
    out, all_lse = merged(shaped[0], shaped[1], "fp32", np)
    whole = np.exp(scores) @ values / np.exp(scores).sum()
    np.testing.assert_allclose(out.exact[0, 0, 0], whole, rtol=1e-12)
    np.testing.assert_allclose(all_lse.exact[0, 0, 0], np.log(np.exp(scores).sum()), rtol=1e-12)


def test_empty_parts_do_not_count_and_rows_of_none_are_zero() -> None:
    parts, lse = PARTS.copy(), LSE.copy()
    lse[1], lse[:, :, :, 2] = -np.inf, -np.inf
    parts[1], parts[:, :, 2] = np.nan, np.inf
    out, all_lse = merged(parts, lse, "fp32", np)
    alone, alone_lse = merged(parts[[0, 2]], lse[[0, 2]], "fp32", np)
    np.testing.assert_array_equal(out.exact, alone.exact)
    np.testing.assert_array_equal(all_lse.exact, alone_lse.exact)
    assert not out.exact[:, 2].any()
    assert not out.high[:, 2].any()
    assert np.isneginf(all_lse.high[:, :, 2]).all()


@pytest.mark.parametrize("strange", [np.nan, np.inf])
@pytest.mark.parametrize("count", [1, 3])
def test_a_row_with_a_strange_log_sum_exp_is_nan_and_others_are_not(
    strange: float, count: int
) -> None:
    parts, lse = PARTS[:count], LSE[:count].copy()
    lse[0, :, :, 2] = strange
    out, all_lse = merged(parts, lse, "fp32", np)
    assert np.isnan(out.exact[:, 2]).all()
    assert np.isnan(all_lse.exact[:, :, 2]).all()
    assert np.isfinite(np.delete(out.exact, 2, axis=1)).all()
    assert element_shares(np.zeros(out.exact.shape), out)[:, 2].min() > 1


@pytest.mark.parametrize("dtype", ["bf16", "fp16", "fp32"])
def test_float32_is_inside_and_an_error_of_a_part_in_a_thousand_is_not(dtype: str) -> None:
    out, all_lse = merged(PARTS, LSE, dtype, np)
    weights = np.exp(LSE - LSE.max(axis=0)).swapaxes(2, 3)[..., None]
    got = (weights * PARTS).sum(axis=0) / weights.sum(axis=0)
    assert element_shares(round_to(got, dtype), out).max() <= 1
    wrong = round_to(got * np.float32(1 + 2.0**-6), dtype)
    assert (element_shares(wrong, out) > 1).mean() > 0.9
    assert element_shares(all_lse.exact.astype(np.float32), all_lse).max() <= 1
    assert element_shares(all_lse.exact + 1e-4, all_lse).min() > 1


def test_a_single_part_is_copied_exactly() -> None:
    out, all_lse = merged(PARTS[:1], LSE[:1], "fp32", np)
    np.testing.assert_array_equal(out.low, PARTS[0])
    np.testing.assert_array_equal(out.high, PARTS[0])
    np.testing.assert_array_equal(all_lse.exact, LSE[0])
