from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from fa4gen.masks import NoMask
from fa4gen.scores import Score, Softcap
from fa4gen.verify.errors import element_shares
from fa4gen.verify.reference import (
    AttentionProblem,
    AttentionResult,
    exact_attention,
    rounded_attention,
)
from fa4gen.verify.rounding import EXP2_POLYNOMIAL_ERROR, Precision, round_to
from fa4gen.verify.tolerance import FROBENIUS_FACTOR, Errors, bounds, measure

BF16 = Precision("bf16", "bf16")
PROBLEM = AttentionProblem(NoMask(), Score(), 0.25)


def result(out, lse=None) -> AttentionResult:
    out = np.asarray(out, dtype=np.float64)
    return AttentionResult(out, None if lse is None else np.asarray(lse, dtype=np.float64))


def ones(rows: int = 4, columns: int = 8) -> np.ndarray:
    return np.ones((1, rows, 1, columns))


@pytest.mark.parametrize(
    ("got", "error"), [(-np.inf, 0.0), (np.inf, np.inf), (np.nan, np.inf), (-1e30, np.inf)]
)
def test_lse_of_rows_that_see_nothing(got, error) -> None:
    exact = result(ones(1), [[[-np.inf]]])
    assert measure(result(ones(1), [[[got]]]), exact).lse == error


def test_minus_infinity_where_a_number_belongs() -> None:
    assert measure(result(ones(1), [[[-np.inf]]]), result(ones(1), [[[3.0]]])).lse == math.inf


def test_rows_of_zeros_have_to_be_zeros() -> None:
    exact = ones()
    exact[0, 0] = 0
    right = measure(result(exact), result(exact, np.zeros((1, 1, 4))))
    assert (right.frobenius, right.row, right.element) == (0, 0, 0)
    wrong = exact.copy()
    wrong[0, 0, 0, 0] = 1e-20
    assert measure(result(wrong), result(exact, np.zeros((1, 1, 4)))).row == math.inf


def test_nothing_at_all() -> None:
    empty = result(np.zeros((1, 0, 2, 8)), np.zeros((1, 2, 0)))
    assert measure(empty, empty) == Errors(0, 0, 0, 0)
    everything_zero = result(np.zeros((1, 2, 1, 8)), np.full((1, 1, 2), -np.inf))
    assert measure(everything_zero, everything_zero) == Errors(0, 0, 0, 0)


def test_huge_and_tiny_values_do_not_leave_float64() -> None:
    for unit in (1e-300, 1e300):
        errors = measure(result(1.5 * unit * ones()), result(unit * ones(), np.zeros((1, 1, 4))))
        assert errors.frobenius == pytest.approx(0.5)


def test_rows_that_come_out_the_same_do_not_average_out() -> None:
    """The error that all rows have in common depends on the maximum that they are scaled by."""
    q, k, v = np.ones((3, 1, 64, 1, 16), dtype=np.float32)
    k *= np.repeat([0.25, 0.1, 0.07, 0.03], 16).astype(np.float32)[None, :, None, None]
    exact = exact_attention(PROBLEM, q, k, v)
    own = measure(rounded_attention(PROBLEM, q, k, v, BF16, np.random.default_rng(0)), exact)
    found = bounds(own, exact, PROBLEM, q, k, BF16)
    scores = 0.25 * np.einsum("bqhd,bkhd->bhqk", q, k).astype(np.float64)
    frobenius = []
    for shift in np.linspace(0, 5, 50):
        weights = np.exp(scores - scores.max() - shift)
        sums = weights.sum(axis=3, keepdims=True)
        out = np.einsum("bhqk,bkhd->bqhd", round_to(weights, "bf16") / sums, v)
        errors = measure(AttentionResult(out, exact.lse), exact)
        frobenius.append(errors.frobenius)
        assert errors.frobenius <= found.frobenius
    independent = FROBENIUS_FACTOR * own.frobenius + 1.5 * 2.0**-8 / math.sqrt(64)
    assert max(frobenius) > independent, "a correct kernel would be refused"


def test_a_softcap_costs_some_accuracy_of_the_lse() -> None:
    q, k = np.ones((2, 1, 4, 1, 64), dtype=np.float32)
    exact = exact_attention(PROBLEM, q, k, k)
    capped = AttentionProblem(NoMask(), Softcap(50.0), 0.25)
    own = Errors(0, 0, 0, 0)
    plain = bounds(own, exact, PROBLEM, q, k, BF16).lse
    assert bounds(own, exact, capped, q, k, BF16).lse == pytest.approx(plain + 50 * 2.0**-20)


def test_bounds_without_any_key() -> None:
    q = np.ones((1, 3, 1, 64), dtype=np.float32)
    k = np.ones((1, 0, 1, 64), dtype=np.float32)
    exact = exact_attention(PROBLEM, q, k, k)
    found = bounds(Errors(0, 0, 0, 0), exact, PROBLEM, q, k, BF16)
    assert found.lse == 0
    assert found.element == 0


def test_bounds_of_fp8_follow_from_both_roundings() -> None:
    rng = np.random.default_rng(1)
    q, k, v = rng.standard_normal((3, 1, 400, 1, 64), dtype=np.float32)
    exact = exact_attention(PROBLEM, q, k, v)
    own = Errors(0, 0, 0, 0)
    fp8 = bounds(own, exact, PROBLEM, q, k, Precision("fp8_e4m3", "fp16"))
    bf16 = bounds(own, exact, PROBLEM, q, k, BF16)
    floor = 2.0**-4 + 2.0**-12
    assert fp8.row == pytest.approx(floor)
    assert fp8.frobenius == pytest.approx(floor / 20)
    assert fp8.element == pytest.approx(2.0**-4 * np.abs(exact.out).max())
    assert fp8.lse < bf16.lse, "the log-sum-exp knows nothing of fp8; products are added by 32"


def test_scales_and_a_shift_cost_little_of_the_lse() -> None:
    rng = np.random.default_rng(1)
    q, k, v = rng.standard_normal((3, 1, 400, 1, 64), dtype=np.float32)
    own = Errors(0, 0, 0, 0)
    descales = {"query": np.float32([[2.0]]), "key": np.float32([[1.5]])}
    exact = exact_attention(PROBLEM, q, k, v, descales=descales)
    precision = Precision("fp8_e4m3", "bf16", 0.0, 8)
    plain = bounds(own, exact, PROBLEM, q, k, Precision("fp8_e4m3", "bf16")).lse
    shifted = bounds(own, exact, PROBLEM, q, k, precision).lse
    assert shifted == pytest.approx(plain + 8 * 2.0**-21)
    scaled = bounds(own, exact, PROBLEM, q, k, precision, descales=descales).lse
    assert shifted < scaled < 1e-4


def test_a_polynomial_is_allowed_its_own_error_and_no_more() -> None:
    rng = np.random.default_rng(1)
    q, k, v = rng.standard_normal((3, 1, 400, 1, 64), dtype=np.float32)
    exact = exact_attention(PROBLEM, q, k, v)
    own = Errors(0, 0, 0, 0)
    plain = bounds(own, exact, PROBLEM, q, k, Precision("fp16", "fp16"))
    e = EXP2_POLYNOMIAL_ERROR
    loose = bounds(own, exact, PROBLEM, q, k, Precision("fp16", "fp16", exp2_error=e))
    assert loose.lse - plain.lse == pytest.approx(e)
    assert loose.row - plain.row == pytest.approx(e)
    assert loose.frobenius - plain.frobenius == pytest.approx(e / 20)
    assert loose.element - plain.element == pytest.approx(e * np.abs(exact.out).max())


def test_only_kernels_with_a_polynomial_are_allowed_its_error(make_plan) -> None:
    assert Precision.of(make_plan()).exp2_error == 0
    some = {"arch": "sm_100a", "dtype": "fp16"}
    assert Precision.of(make_plan(**some, exp2_fma_share=0.0)).exp2_error == 0
    assert Precision.of(make_plan(**some, exp2_fma_share=0.125)).exp2_error == 8.8e-5
    fp8 = Precision.of(make_plan(arch="sm_100a", dtype="fp8_e4m3", out_dtype="fp16"))
    assert (fp8.dtype, fp8.out_dtype, fp8.probability_shift) == ("fp8_e4m3", "fp16", 8)


def test_the_error_of_the_polynomial() -> None:
    """By Horner's rule in float32, as the kernels compute it."""
    fraction = np.linspace(0, 1, 1 << 20, endpoint=False, dtype=np.float32)
    power = np.full_like(fraction, 0.0771190897)
    for coefficient in (0.2275643945, 0.6951461434, 1.0):
        power = power * fraction + np.float32(coefficient)
    error = np.abs(power / np.exp2(fraction.astype(np.float64)) - 1).max()
    assert 0.95 * EXP2_POLYNOMIAL_ERROR < error < EXP2_POLYNOMIAL_ERROR


def _far_apart(rng: np.random.Generator, size: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return query, key and value of 16 rows; logits grow to ``size`` in 10 steps of 50 keys."""
    q = rng.standard_normal((16, 1, 1, 64), dtype=np.float32)
    k, v = rng.standard_normal((2, 16, 500, 1, 64), dtype=np.float32)
    q[..., 0] = 8
    k[..., 0] = np.repeat(np.linspace(0, size / (8 * PROBLEM.softmax_scale), 10), 50)[:, None]
    return q, k, v


def _rounded_otherwise(rng: np.random.Generator, q, k, v) -> AttentionResult:
    """Attention whose scores are off by up to 2 of the 6 units that tensor cores may, alone."""
    scores = np.einsum("bqhd,bkhd->bhqk", q, k, dtype=np.float64) * PROBLEM.softmax_scale
    scores *= 1 + rng.uniform(-(2.0**-22), 2.0**-22, scores.shape)
    largest = scores.max(axis=3, keepdims=True)
    weights = np.exp(scores - largest)
    total = weights.sum(axis=3, keepdims=True)
    out = np.einsum("bhqk,bkhd->bqhd", weights / total, v)
    return AttentionResult(out, (largest + np.log(total))[..., 0])


def test_few_rows_of_logits_in_the_thousands_do_not_average_out() -> None:
    precision = Precision("fp16", "fp16")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q, k, v = _far_apart(rng, 1e4)
        exact = exact_attention(PROBLEM, q, k, v)
        own = measure(rounded_attention(PROBLEM, q, k, v, precision, rng), exact)
        found = bounds(own, exact, PROBLEM, q, k, precision, value=v)
        errors = measure(_rounded_otherwise(rng, q, k, v), exact)
        assert errors.frobenius <= found.frobenius, seed
        assert errors.row <= found.row, seed
        assert errors.element <= found.element, seed


def test_logits_below_a_few_hundred_leave_the_bounds_as_they_are() -> None:
    precision = Precision("fp16", "fp16")
    own = Errors(0, 0, 0, 0)
    for size, more in ((400.0, False), (1e4, True)):
        q, k, v = _far_apart(np.random.default_rng(1), size)
        exact = exact_attention(PROBLEM, q, k, v)
        without = bounds(own, exact, PROBLEM, q, k, precision)
        found = bounds(own, exact, PROBLEM, q, k, precision, value=v)
        assert (found.frobenius > without.frobenius) == more
        assert found.frobenius < 0.005, "a softmax scale that is wrong by 1 % still shows"


def test_shares_of_intervals() -> None:
    exact = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 1.0])
    low = np.array([0.5, 0.5, 0.5, 0.0, 0.0, 2.0, 1.0])
    high = np.array([2.0, 2.0, 2.0, 0.0, 0.0, 2.0, 1.0])
    got = np.array([1.5, 0.25, 1.0, 0.0, 1e-30, 2.0, np.nan], np.float32)
    result = SimpleNamespace(exact=exact, low=low, high=high)
    np.testing.assert_array_equal(
        element_shares(got, result), [0.5, 1.5, 0.0, 0.0, np.inf, 0.0, np.inf]
    )
