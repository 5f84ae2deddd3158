"""Intervals of what float32 may make of an expression: they hold its results, and little more."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.epilogues.activation import Activation, parse_activation
from fa4gen.expressions.float_intervals import Ends, FloatIntervals
from fa4gen.expressions.tree import evaluate

CLAMPED = "min(gate, 7) * sigmoid(1.702 * min(gate, 7)) * (max(min(up, 7), -7) + 1)"
TEXTS = [
    "silu(gate) * up", "gelu(gate) * up", "relu(gate) * up", "sigmoid(gate) * up", CLAMPED,
    "tanh(gate) - up / (1 + exp(gate))", "log(1 + exp(gate)) * sqrt(abs(up))",
    "where(gate > up, gate * gate, -up)", "where(gate > 0 and not up < 1, gate, up)",
    "exp2(min(gate, 3)) + log2(2 + up * up)", "erf(gate) * up", "abs(gate) / (gate - up)",
]  # fmt: skip


def found(text: str, gate: Ends, up: Ends) -> Ends:
    values = {"gate": gate, "up": up}
    ends: Ends = evaluate(parse_activation(text).tree, values, FloatIntervals(np))
    return ends


def numbers(seed: int, spread: float = 4.0) -> tuple[np.ndarray, np.ndarray]:
    gate, up = np.random.default_rng(seed).standard_normal((2, 3000)) * spread
    return gate, up


@pytest.mark.parametrize("error", [0.0, 1e-6, 1e-2, 0.5])
@pytest.mark.parametrize("text", TEXTS)
def test_results_for_numbers_of_the_intervals_are_inside(text: str, error: float) -> None:
    gate, up = (x.astype(np.float32).astype(np.float64) for x in numbers(1))
    with np.errstate(all="ignore"):
        ends = found(text, Ends(gate - error, gate + error), Ends(up - error, up + error))
    expression: Activation = parse_activation(text)
    for share in (-1, -0.4, 0, 0.7, 1):
        for other in (-1, 0, 0.3, 1):
            moved = tuple((x + one * error).astype(np.float32)
                          for x, one in ((gate, share), (up, other)))  # fmt: skip
            there = np.logical_and(
                *(np.abs(one - at) <= error for one, at in zip(moved, (gate, up), strict=True))
            )
            in_float32 = expression.evaluate_gated(*moved, np).astype(np.float64)
            exact = expression.evaluate_gated(*(x.astype(np.float64) for x in moved), np)
            for value in (in_float32, exact):
                inside = (ends.low <= value) & (value <= ends.high)
                assert (inside | np.isnan(value))[there].all()


@pytest.mark.parametrize("text", TEXTS[:5])
def test_single_numbers_have_narrow_intervals(text: str) -> None:
    gate, up = numbers(2)
    ends = found(text, Ends(gate, gate), Ends(up, up))
    sizes = np.abs(gate) * np.abs(up) + np.abs(gate) + np.abs(up) + 1
    assert (ends.high - ends.low < 1e-5 * sizes).all()
    exact = parse_activation(text).evaluate_gated(gate, up, np)
    shares = (ends.high - ends.low) / np.maximum(np.abs(exact), 1e-3)
    assert np.median(shares) < 1e-5


def test_what_float32_computes_exactly_has_no_width() -> None:
    rng = np.random.default_rng(3)
    gate, up = (rng.integers(-50, 50, 1000).astype(np.float64) for _ in range(2))
    for text in ("max(gate, 0) * up", "gate - up", "max(gate, min(up, 3))", "0.5 * gate + up"):
        ends = found(text, Ends(gate, gate), Ends(up, up))
        assert np.array_equal(ends.low, ends.high)
        assert np.array_equal(ends.low, parse_activation(text).evaluate_gated(gate, up, np))
    ends = found("0.1 * gate + up", Ends(gate, gate), Ends(up, up))
    assert (ends.low < ends.high)[gate != 0].all()


def test_a_choice_takes_the_other_number_for_nan() -> None:
    nan, one = np.array([np.nan]), np.array([1.0])
    ends = found("min(gate, 7) * up", Ends(nan, nan), Ends(one, one))
    assert (ends.low, ends.high) == (7, 7)
    ends = found("silu(gate) * up", Ends(nan, nan), Ends(one, one))
    assert np.isnan(ends.low).all()
    assert np.isnan(ends.high).all()


def test_a_quotient_by_what_may_be_zero_may_be_anything() -> None:
    zero = np.array([0.0])
    ends = found("gate / up", Ends(zero + 1, zero + 1), Ends(zero - 1e-3, zero + 1e-3))
    assert (ends.low, ends.high) == (-np.inf, np.inf)


def test_the_gpu_may_give_zero_for_far_powers() -> None:
    gate = np.array([-88.0])
    for text in ("silu(gate) * up", "gate / (1 + exp(-gate)) * up"):
        ends = found(text, Ends(gate, gate), Ends(-gate, -gate))
        assert ends.low < 0 <= ends.high
    ends = found("silu(gate) * up", Ends(gate * 100, gate * 100), Ends(gate, gate))
    assert np.isfinite(ends.high).all()
    assert abs(ends.high[0]) < 1e-30
