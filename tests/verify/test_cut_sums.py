"""Sums that keep 13 bits, beside the same sums with every cut made."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.verify.cut_sums import CutSums
from fa4gen.verify.rounding import round_to


def exponents(x: np.ndarray) -> np.ndarray:
    return np.floor(np.log2(np.where(x == 0, 2.0**-120, np.abs(x))))


def all_cuts(a: np.ndarray, b: np.ndarray, bits: int = 13) -> np.ndarray:
    """a . b, from the end of k: each product and each sum cut towards zero."""
    total = np.zeros((len(a), b.shape[1]))
    for start in range((a.shape[1] - 1) // 32 * 32, -1, -32):
        x, y = a[:, start : start + 32, None], b[None, start : start + 32]
        largest = np.maximum(exponents(total), (exponents(x) + exponents(y)).max(axis=1))
        unit = 2.0 ** (largest - bits)
        total = (np.trunc(total / unit) + np.trunc(x * y / unit[:, None]).sum(axis=1)) * unit
        unit = 2.0 ** (exponents(total) - bits)
        total = np.trunc(total / unit) * unit
    return total


def drawn(mean: float, keys: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = round_to(64 * rng.random((20, keys), np.float32), "fp8_e4m3")
    values = round_to(rng.standard_normal((keys, 16), np.float32) + np.float32(mean), "fp8_e4m3")
    return weights.astype(np.float64), values.astype(np.float64)


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("keys", [1, 33, 1000])
def test_every_cut_is_made(keys: int, mean: float) -> None:
    a, b = drawn(mean, keys)
    assert (CutSums().products(a, b, np, backwards=True) == all_cuts(a, b)).all()


def test_a_large_product_leaves_nothing_of_small_ones() -> None:
    a = np.full((1, 64), 0.125)
    a[0, 40] = 16384
    assert CutSums().products(a, np.ones((64, 1)), np) == 16384 + 4  # 32 of them come before
    assert CutSums().products(a, np.ones((64, 1)), np, backwards=True) == 16384


def test_promotion_keeps_what_long_sums_lose() -> None:
    a, b = drawn(1.0, 8192)
    exact = a @ b
    size = np.linalg.norm(exact)
    never = np.linalg.norm(CutSums().products(a, b, np) - exact) / size
    every_8 = np.linalg.norm(CutSums().products(a, b, np, part=1024) - exact) / size
    assert never > 0.05
    assert every_8 < 0.015


@pytest.mark.parametrize("part", [None, 256])
def test_no_sum_of_positive_products_is_shorter_than_its_room(part: int | None) -> None:
    a, b = drawn(1.0, 2000)
    b = np.abs(b)
    sums = a @ b
    room = CutSums(part_keys=part).room(a, b, sums, np)
    pieces = range(0, a.shape[1], part or a.shape[1])
    size = part or a.shape[1]
    cut = sum(all_cuts(a[:, i : i + size], b[i : i + size]) for i in pieces)
    assert (sums - cut <= room).all()
    assert (sums - cut > 0.05 * room).any()


def test_whole_numbers_in_13_bits_are_not_cut() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 4, shape).astype(np.float64) for shape in ((8, 200), (200, 8)))
    assert (CutSums().products(a, b, np) == a @ b).all()
    assert (CutSums().score_room(a, b.T, np) == 0).all()
    assert (CutSums().room(a, b, a @ b, np) <= 2.0**-12 * (a @ b)).all()


def test_scores_are_inside_their_room() -> None:
    rng = np.random.default_rng(2)
    q, k = (
        round_to(8 * rng.standard_normal((n, 128), np.float32), "fp8_e4m3").astype(np.float64)
        for n in (30, 50)
    )
    distance = np.abs(all_cuts(q, k.T) - q @ k.T)
    assert (distance <= CutSums().score_room(q, k, np)).all()
    assert distance.max() > 0
