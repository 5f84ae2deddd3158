from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.masks import Causal, NoMask
from fa4gen.masks.expression import parse_mask
from fa4gen.scores import Score, Softcap
from fa4gen.scores.expression import parse_score
from fa4gen.verify import reference
from fa4gen.verify.reference import AttentionProblem, exact_attention, rounded_attention
from fa4gen.verify.rounding import Precision, round_to
from tests.masks.definitions import drawn, sees


def slow_attention(problem, q, k, v):
    batches, rows, heads, _ = q.shape
    keys, key_heads = k.shape[1:3]
    cap = problem.score.numbers().get("softcap")
    out = np.zeros((*q.shape[:3], v.shape[3]))
    lse = np.full((batches, heads, rows), -math.inf)
    for b in range(batches):
        for h in range(heads):
            kh = h // (heads // key_heads)
            for i in range(rows):
                seen = [j for j in range(keys) if sees(problem.mask, i, j, rows, keys)]
                logits = []
                for j in seen:
                    x = problem.softmax_scale * math.fsum(
                        float(a) * float(c) for a, c in zip(q[b, i, h], k[b, j, kh], strict=True)
                    )
                    logits.append(x if cap is None else cap * math.tanh(x / cap))
                if not seen:
                    continue
                total = math.fsum(math.exp(x) for x in logits)
                lse[b, h, i] = math.log(total)
                for x, j in zip(logits, seen, strict=True):
                    out[b, i, h] += math.exp(x) / total * v[b, j, kh].astype(np.float64)
    return out, lse


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


def test_rows_that_see_nothing() -> None:
    problem = AttentionProblem(Causal(), Score(), 1.0)
    q = np.ones((1, 5, 1, 4), dtype=np.float32)
    k = v = np.ones((1, 2, 1, 4), dtype=np.float32)
    result = exact_attention(problem, q, k, v)
    assert (result.out[0, :3] == 0).all()
    assert np.isneginf(result.lse[0, 0, :3]).all()
    assert np.isfinite(result.lse[0, 0, 3:]).all()


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


def test_rounded_attention_of_one_key_shows_the_rounding_of_its_probability() -> None:
    problem = AttentionProblem(NoMask(), Score(), 1.0)
    q, k = np.zeros((2, 1, 500, 1, 64), dtype=np.float32)[:, :, :500]
    k = k[:, :1]
    v = round_to(np.random.default_rng(1).standard_normal((1, 1, 1, 64), dtype=np.float32), "bf16")
    exact = exact_attention(problem, q, k, v)
    on_time = rounded_attention(
        problem, q, k, v, Precision("bf16", "bf16"), np.random.default_rng(2)
    )
    np.testing.assert_array_equal(on_time.out, exact.out)
    late = rounded_attention(
        problem, q, k, v, Precision("bf16", "bf16", 8.0), np.random.default_rng(2)
    )
    assert np.abs(late.out / exact.out - 1).max() > 2.0**-9


@pytest.mark.parametrize("score", [Score(), Softcap(2.0)])
@pytest.mark.parametrize("names", [("query", "key", "value"), ("key",), ()])
def test_scales_multiply_their_tensors(score, names) -> None:
    """Powers of two are exact, so that the tensors can be multiplied by them beforehand."""
    problem = AttentionProblem(Causal(), score, 0.3)
    rng = np.random.default_rng(3)
    q = rng.standard_normal((2, 9, 6, 8), dtype=np.float32)
    k = rng.standard_normal((2, 11, 3, 8), dtype=np.float32)
    v = rng.standard_normal((2, 11, 3, 4), dtype=np.float32)
    descales = {name: 2.0 ** rng.integers(-1, 2, (2, 3)).astype(np.float32) for name in names}
    by_key_head = {name: scale[:, None, :, None] for name, scale in descales.items()}
    expected = slow_attention(
        problem,
        q * np.repeat(by_key_head.get("query", np.ones((1, 1, 3, 1))), 2, axis=2),
        k * by_key_head.get("key", 1),
        v * by_key_head.get("value", 1),
    )
    exact = exact_attention(problem, q, k, v, descales=descales)
    np.testing.assert_allclose(exact.out, expected[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(exact.lse, expected[1], rtol=1e-12, atol=1e-12)
    fine = rounded_attention(problem, q, k, v, Precision("fp16", "fp16"), rng, descales=descales)
    np.testing.assert_allclose(fine.out, exact.out, atol=2e-3 * np.abs(exact.out).max())
    np.testing.assert_allclose(fine.lse, exact.lse, atol=1e-5)


def test_a_row_that_sees_no_key_has_a_bound_beside_a_score_that_is_an_expression() -> None:
    rng = np.random.default_rng(4)
    query, key, value = (rng.normal(size=(1, 6, 1, 4)) for _ in range(3))
    score = parse_score("score + 0.5 * key", ())
    problem = AttentionProblem(parse_mask("key < query"), score, 0.5, 2.0**-20)
    found = exact_attention(problem, query, key, value)
    assert found.lse[0, 0, 0] == -math.inf
    assert np.isfinite(found.shift).all()
    assert (found.shift[0, 0, 1:] > 0).all()
