"""Sums of products of 8-bit floats, rule by rule: tests/emulator/hardware has those of an H200."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator.instructions.mma.cut_sums import SMALLEST_EXPONENTS, add_products

E4M3 = (SMALLEST_EXPONENTS["e4m3"],) * 2


def one(total: float, a: list[float], b: list[float], **options: Any) -> float:
    rows = (np.array([x], ml_dtypes.float8_e4m3fn).astype(np.float32) for x in (a, b))
    return float(add_products(np.array([[total]]), *rows, np, E4M3, **options)[0, 0])


def test_the_sum_so_far_keeps_13_bits() -> None:
    assert one(1 + 2.0**-20, [0], [0]) == 1
    assert one(-1 - 2.0**-13 - 2.0**-14, [0], [0]) == -1 - 2.0**-13


def test_addends_are_cut_below_the_largest() -> None:
    assert one(2.0**-7, [16, 16], [16, -16]) == 0
    assert one(2.0**-6 + 2.0**-5, [16, 16], [16, -16]) == 2.0**-5
    assert one(0, [16, 16, 0.125, 0.125], [16, -16, 0.1875, 0.1875]) == 0


def test_an_exponent_of_a_product_is_the_sum_of_those_of_its_factors() -> None:
    """1.5 * 1.5 is 2.25, but cuts what is below 2^-13."""
    assert one(2.0**-13, [1.5, 1.5], [1.5, -1.5]) == 2.0**-13
    assert one(2.0**-13, [2.25, 2.25], [1, -1]) == 0


def test_subnormal_factors_have_the_exponent_of_normal_ones() -> None:
    assert one(2.0**-12, [2.0**-6, 2.0**-6], [32, -32]) == 2.0**-12
    assert one(2.0**-12, [2.0**-9, 2.0**-9], [256, -256]) == 0


def test_the_sum_is_cut_unless_it_is_rounded_to_16_bits() -> None:
    a, b = [1.0] * 32, [1.0] * 31 + [1.125]
    assert one(2.0**-13, a, b) == 32.125
    assert one(2.0**-13, a, b, cuts_sum=False) == 32.125 + 2.0**-13


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_sums_of_few_bits_are_exact(kind: str) -> None:
    rng = np.random.default_rng(0)
    smallest = (SMALLEST_EXPONENTS["e4m3" if "e4m3" in kind else "e5m2"],) * 2
    a, b = (rng.integers(-3, 4, (n, 32)).astype(kind).astype(np.float32) for n in (5, 7))
    start = rng.integers(-9, 9, (5, 7)).astype(np.float64)
    assert (add_products(start, a, b, np, smallest) == start + a @ b.T).all()
