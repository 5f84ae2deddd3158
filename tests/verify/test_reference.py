from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.masks import NoMask
from fa4gen.masks.expression import parse_mask
from fa4gen.scores import Score, Softcap
from fa4gen.scores.expression import parse_score
from fa4gen.verify import reference
from fa4gen.verify.cut_sums import CutSums
from fa4gen.verify.reference import AttentionProblem, exact_attention, rounded_attention
from fa4gen.verify.rounding import Precision, round_to
from tests.masks.definitions import drawn, sees
from tests.verify.definitions import attend


def slow_attention(problem, q, k, v):
    rows, keys = q.shape[1], k.shape[1]
    return attend(problem, lambda b, h, i, j: sees(problem.mask, i, j, rows, keys), (q, k, v))


MASKS = drawn(st.integers(1, 6))
SCORES = st.sampled_from([Score(), Softcap(2.0)])


@given(
    mask=MASKS,
    score=SCORES,
    rows=st.integers(1, 9),
    keys=st.integers(0, 9),
    ratio=st.integers(1, 3),
    chunk=st.sampled_from([1, 7, 1 << 18]),
)
@settings(deadline=None, max_examples=60)
def test_exact_attention_follows_the_definition(mask, score, rows, keys, ratio, chunk) -> None:
    problem = AttentionProblem(mask, score, 0.7)
    rng = np.random.default_rng(rows * 100 + keys)
    q = rng.standard_normal((1, rows, 2 * ratio, 4), dtype=np.float32)
    k, v = rng.standard_normal((2, 1, keys, 2, 4), dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reference, "CPU_CHUNK", chunk)  # rows in pieces must make no difference
        result = exact_attention(problem, q, k, v)
    out, lse = slow_attention(problem, q, k, v)
    np.testing.assert_allclose(result.out, out, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(result.lse, lse, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("rows", "keys"), [(5, 3), (3, 5), (4, 4), (4, 0), (0, 4)])
@given(mask=MASKS)
def test_visible_keys_follow_the_definition(rows, keys, mask) -> None:
    problem = AttentionProblem(mask, Score(), 1.0)
    first, end = problem.visible_keys(rows, keys)
    for i in range(rows):
        expected = [j for j in range(keys) if sees(problem.mask, i, j, rows, keys)]
        assert list(range(first[i], end[i])) == expected


@pytest.mark.parametrize("compute", ["exact", "rounded"])
@given(mask=MASKS, rows=st.integers(1, 6), keys=st.integers(0, 6))
@settings(deadline=None, max_examples=30)
def test_a_sink_is_a_key_without_a_value_that_every_row_sees(compute, mask, rows, keys) -> None:
    problem = AttentionProblem(mask, Score(), 0.7)
    rng = np.random.default_rng(rows * 100 + keys)
    q = rng.standard_normal((2, rows, 2, 4), dtype=np.float32)
    k, v = rng.standard_normal((2, 2, keys, 1, 4), dtype=np.float32)
    sinks = np.array([0.5, -np.inf], np.float32)
    out, lse = slow_attention(problem, q, k, v)
    seen = np.isfinite(lse)
    weight = 1 / (1 + np.exp(sinks[None, :, None] - np.where(seen, lse, 0)))
    if compute == "exact":
        result, tolerance = exact_attention(problem, q, k, v, sinks=sinks), 1e-12
    else:
        precision = Precision("fp16", "fp16", 0.0, 0, 0.0)
        result = rounded_attention(problem, q, k, v, precision, rng, sinks=sinks)
        tolerance = 2e-3
    share = np.where(seen, weight, 0).transpose(0, 2, 1)[..., None]
    np.testing.assert_allclose(result.out, out * share, rtol=tolerance, atol=tolerance)
    expected = np.logaddexp(lse, sinks[None, :, None])
    np.testing.assert_allclose(result.lse, expected, rtol=1e-6, atol=1e-6)


def test_large_logits_do_not_overflow() -> None:
    problem = AttentionProblem(NoMask(), Score(), 1.0)
    q = np.full((1, 2, 1, 4), 100, dtype=np.float32)
    k = np.full((1, 3, 1, 4), 100, dtype=np.float32)
    v = np.arange(12, dtype=np.float32).reshape(1, 3, 1, 4)
    result = exact_attention(problem, q, k, v)
    np.testing.assert_allclose(result.out[0, 0, 0], v[0, :, 0].mean(axis=0))
    np.testing.assert_allclose(result.lse, 40_000 + math.log(3))


def test_a_row_that_sees_no_key_has_a_bound_beside_a_score_that_is_an_expression() -> None:
    rng = np.random.default_rng(4)
    query, key, value = (rng.normal(size=(1, 6, 1, 4)) for _ in range(3))
    score = parse_score("score + 0.5 * key", ())
    problem = AttentionProblem(parse_mask("key < query"), score, 0.5, 2.0**-20)
    found = exact_attention(problem, query, key, value)
    assert found.lse[0, 0, 0] == -math.inf
    assert np.isfinite(found.shift).all()
    assert (found.shift[0, 0, 1:] > 0).all()


def test_the_largest_logit_of_sums_of_few_bits_is_in_its_interval() -> None:
    """Terms of one sign: each loses what the sum so far cuts off, always towards zero."""
    sums, problem = CutSums(), AttentionProblem(NoMask(), Score(), 0.125, sum_error=2.0**-23)
    rng = np.random.default_rng(5)
    sizes = (np.exp(rng.standard_normal((1, n, 1, 128))) for n in (16, 64))
    q, k = (round_to(size.astype(np.float32), "fp8_e4m3") for size in sizes)
    found = exact_attention(problem, q, k, k, has_max_logits=True, cut_sums=sums).max_logits
    got = 0.125 * sums.products(q[0, :, 0], k[0, :, 0].T, np).max()
    assert found.low[0] <= got <= found.high[0]
    found = exact_attention(problem, q, k, k, has_max_logits=True).max_logits
    assert not found.low[0] <= got
