from __future__ import annotations

import math

import numpy as np
import pytest

from fa4gen.verify.precision import Precision
from fa4gen.verify.reference import AttentionProblem, AttentionResult, exact_attention
from fa4gen.verify.tolerance import Errors, bounds, measure

BF16 = Precision("bf16", "bf16")
PROBLEM = AttentionProblem(None, None, None, 0.25)


def result(out, lse=None) -> AttentionResult:
    out = np.asarray(out, dtype=np.float64)
    return AttentionResult(out, None if lse is None else np.asarray(lse, dtype=np.float64))


def ones(rows: int = 4, columns: int = 8) -> np.ndarray:
    return np.ones((1, rows, 1, columns))


def test_measures() -> None:
    exact = result(ones(), np.zeros((1, 1, 4)))
    got = ones()
    got[0, 2, 0, 3] += 0.5
    lse = np.zeros((1, 1, 4))
    lse[0, 0, 1] = -0.125
    errors = measure(result(got, lse), exact)
    assert errors.frobenius == pytest.approx(0.5 / math.sqrt(32))
    assert errors.row == pytest.approx(0.5 / math.sqrt(8))
    assert errors.element == 0.5
    assert errors.lse == 0.125
    assert dict(errors) == dict(
        zip(Errors.names(), (*map(float, (errors.frobenius, errors.row)), 0.5, 0.125), strict=True)
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_infinitely_wrong(bad) -> None:
    got = ones()
    got[0, 1, 0, 1] = bad
    errors = measure(result(got), result(ones(), np.zeros((1, 1, 4))))
    assert errors.frobenius == errors.row == errors.element == math.inf


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


@pytest.mark.parametrize(("dtype", "u"), [("bf16", 2.0**-8), ("fp16", 2.0**-11)])
def test_bounds_follow_the_own_errors(dtype, u) -> None:
    rng = np.random.default_rng(1)
    q, k, v = rng.standard_normal((3, 1, 400, 1, 64), dtype=np.float32)
    exact = exact_attention(PROBLEM, q, k, v)
    none = bounds(Errors(0, 0, 0, 0), exact, PROBLEM, q, k, Precision(dtype, dtype))
    some = bounds(Errors(u, 2 * u, 0.01, 1e-3), exact, PROBLEM, q, k, Precision(dtype, dtype))
    assert none.frobenius == pytest.approx(1.5 * u / 20)
    assert some.frobenius - none.frobenius == pytest.approx(1.25 * u)
    assert some.row - none.row == pytest.approx(3 * u)
    assert some.element - none.element == pytest.approx(0.025)
    assert some.lse - none.lse == pytest.approx(4e-3)
    assert none.element <= u * np.abs(exact.out).max()
    assert 1e-7 < none.lse < 1e-4, "one key more among ten thousand shows"


def test_a_softcap_costs_some_accuracy_of_the_lse() -> None:
    q, k = np.ones((2, 1, 4, 1, 64), dtype=np.float32)
    exact = exact_attention(PROBLEM, q, k, k)
    capped = AttentionProblem(None, None, 50.0, 0.25)
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
