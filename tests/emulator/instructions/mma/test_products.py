"""Sums of products against exact ones, in any order."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator.instructions.mma.products import added, significant_bits, sums_of_products
from tests.emulator.rounding import encode

NAN = 0x7FFFFFFF


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    left, right = a.astype(np.float64), b.astype(np.float64)
    sums = [[sum(map(Fraction, (x * y).tolist())) for y in right] for x in left]
    bits = [[encode(total, "f32") if total else 0 for total in row] for row in sums]
    return np.array(bits, np.uint32).view(np.float32)


def matrix(rng: np.random.Generator, rows: int, k: int, kind: str) -> np.ndarray:
    values = rng.normal(size=(rows, k))
    if kind == "spread":
        values = values * 2.0 ** rng.integers(-30, 3, (rows, k))
    elif kind == "whole":
        values = np.rint(values * 3)
    elif kind == "rows of their own size":
        values = values * 2.0 ** rng.integers(-40, 40, (rows, 1))
    elif kind == "sparse":
        values = values * (rng.random((rows, k)) < 0.1)
    return values


KINDS = ["plain", "spread", "whole", "rows of their own size", "sparse"]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (16, 8, 16), (16, 24, 128), (7, 5, 500)])
def test_as_rounded_from_exact_sums(dtype: type, kind: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m * n + k)
    with np.errstate(all="ignore"):
        a, b = (
            np.nan_to_num(matrix(rng, rows, k, kind).astype(dtype).astype(np.float32), posinf=3.0,
                          neginf=-5.0)
            for rows in (m, n)
        )  # fmt: skip
    bits = {"bfloat16": 8, "float16": 11}.get(np.dtype(dtype).name, 4)
    found = sums_of_products(a, b, bits)
    np.testing.assert_array_equal(found.view(np.uint32), exact(a, b).view(np.uint32))
    order = rng.permutation(k)
    again = sums_of_products(a[:, order], b[:, order], bits)
    np.testing.assert_array_equal(found.view(np.uint32), again.view(np.uint32))


def test_float32_sums_depend_on_the_order() -> None:
    """Which is why there is more to it than a product of NumPy."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(64, 256)).astype(np.float16).astype(np.float32) for _ in range(2))
    order = rng.permutation(256)
    assert (a @ b.T != a[:, order] @ b[:, order].T).any()


def test_ties_that_float64_misses() -> None:
    """Halfway between two float32 but for a product that is too small beside the others."""
    small = np.float32(2.0**-60)
    a = np.float32([[1, 2.0**-12, small, 0], [1, 2.0**-12, -small, 0], [1, 2.0**-12, 0, 0]])
    b = np.float32([[1, 2.0**-12, 1, 0]])
    found = sums_of_products(a, b)
    assert found[:, 0].tolist() == [1 + 2.0**-23, 1, 1]


def test_infinities_and_nans() -> None:
    inf, nan = np.inf, np.nan
    a = np.float32([[inf, 1], [inf, -inf], [nan, 1], [-0.0, 0], [0.1, 3], [inf, 0]])
    b = np.float32([[1, 1], [0, 2], [1, 0.3]]).astype(np.float16).astype(np.float32)
    a = a.astype(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        found = sums_of_products(a, b).view(np.uint32)
        wanted = (a @ b.T).astype(np.float32)
    wanted = np.where(np.isnan(wanted), np.uint32(NAN), wanted.view(np.uint32))
    np.testing.assert_array_equal(found[[0, 1, 2, 3, 5]], wanted[[0, 1, 2, 3, 5]])
    with np.errstate(all="ignore"):
        total = added(np.float32([[inf, nan, 1]]), np.float32([[-inf, 1, 2]]))
    assert total.view(np.uint32).tolist() == [[NAN, NAN, 0x40400000]]


def test_batches() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.normal(size=(3, rows, 32)).astype(np.float16).astype(np.float32) for rows in (5, 7))
    found = sums_of_products(a, b)
    assert found.shape == (3, 5, 7)
    for n in range(3):
        np.testing.assert_array_equal(found[n], exact(a[n], b[n]))


def test_significant_bits() -> None:
    assert significant_bits("bf16", "bf16") == 8
    assert significant_bits("e4m3", "e2m1") == 4
    assert significant_bits("bf16", "tf32") == 11
