from __future__ import annotations

import numpy as np
import pytest

from fa4gen.config.find import find_configs
from fa4gen.verify.cut_sums import CutSums
from fa4gen.verify.rounding import Precision
from fa4gen.verify.weight_ends import WeightedSums, output_ends, weight_room
from tests.shipped import plan_of

BF16 = Precision("bf16", "bf16")
FP8 = Precision("fp8_e4m3", "bf16", 0.0, 8)


def room(weights, precision=BF16, errors=0.0):
    return weight_room(np.array([weights], np.float64), errors, precision, np)[0][0]


def test_powers_of_two_are_not_rounded() -> None:
    assert (room([1.0, 0.5, 2.0**-30, 0.0]) == 0).all()
    assert (room([3.0, 1.5, 12.0 * 2.0**-9]) == 0).all(), "but for their largest"


def test_one_other_weight_makes_all_of_its_row_rounded() -> None:
    """The maximum that a kernel scales by may be any of the row's."""
    found = room([1.0, 0.7, 0.0])
    assert found == pytest.approx([2.0**-8, 0.7 * 2.0**-8, 0.0], rel=1e-3)


def test_raised_weights_are_rounded_by_a_maximum_of_their_own() -> None:
    weights = np.array([[1.3, 0.65, 2.0**-8, 2.0**-9]])
    raised = np.array([True, True, False, False])
    assert (weight_room(weights, 0.0, BF16, np, raised)[0] == 0).all()
    assert (weight_room(weights, 0.0, BF16, np)[0] > 0).all()
    found = weight_room(np.array([[1.3, 0.6, 2.0**-8, 2.0**-9]]), 0.0, BF16, np, raised)[0]
    assert (found > 0).tolist() == [[True, True, True, True]]
    # a row that sees none of them
    unseen = np.array([[0.0, 0.0, 1.0, 0.5]])
    assert (weight_room(unseen, 0.0, BF16, np, raised)[0] == 0).all()


@pytest.mark.parametrize("precision", [FP8, Precision("fp16", "fp16")])
def test_weights_below_the_least_number_may_vanish(precision) -> None:
    least = 2.0**-17 if precision is FP8 else 2.0**-24
    assert room([1.0, least, least / 2], precision) == pytest.approx([0, 0, least / 2])
    # Between two subnormal numbers by half of their distance, and a float32's own error.
    found = room([1.0, 1.4 * least, 0.3 * least], precision)
    assert found[1:] == pytest.approx([0.5 * least, 0.3 * least], rel=0.2)


def test_weights_vanish_earlier_where_rows_share_a_maximum(make_plan) -> None:
    """ALiBi's kernel: its maxima may be above a row's own while that row's sum is not tiny."""
    shares = Precision.of(plan_of(find_configs(["d128_alibi_causal_bf16"])[0]))
    assert room([1.0, 2.0**-57, 2.0**-117], shares) == pytest.approx([0, 0, 2.0**-117])
    assert (room([1.0, 2.0**-57, 2.0**-117], Precision.of(make_plan())) == 0).all()


def test_scales_of_all_values_move_no_cut() -> None:
    """Sums of few bits are those of scaled weights: a power of two changes nothing in them."""
    rng = np.random.default_rng(1)
    weights = 2.0 ** rng.integers(-6, 1, (5, 96))
    values = rng.integers(1, 9, (96, 4)).astype(np.float64)
    precision = Precision("fp8_e4m3", "bf16", probability_shift=6, sums=CutSums())
    total, unit = weights.sum(axis=1, keepdims=True), 2.0**-15
    plain = WeightedSums(weights, None, values, weights @ values, total)
    scales = np.full(96, unit)
    scaled = WeightedSums(weights, scales, values, (weights * unit) @ values, total)
    for end, other in zip(
        output_ends(plain, np.zeros_like(weights), precision, np),
        output_ends(scaled, np.zeros_like(weights), precision, np),
        strict=True,
    ):
        np.testing.assert_allclose(other, end * unit, rtol=1e-12)
