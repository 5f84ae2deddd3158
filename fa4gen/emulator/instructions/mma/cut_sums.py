"""Sums of products of 8-bit floats in Hopper's tensor cores, which keep 13 bits.

An instruction adds all its products and the sum so far. The exponent of a product is the sum of
those of its factors. What is below 2^-13 of the largest exponent is cut off each addend, towards
zero; then the sum keeps 13 bits after its first. The results of 10,240 random sums of an H200 are
reproduced bit for bit (tests/emulator/hardware). Not known from these are types that differ and
subnormal factors, which are given the exponent of the smallest normal number.
"""

from __future__ import annotations

from typing import Any, Final

SUM_BITS: Final = 13
"""Bits below the first of the largest addend, and of a sum, that are kept."""
SMALLEST_EXPONENTS: Final = {"e4m3": -6, "e5m2": -14}
_NO_EXPONENT: Final = -127
"""The exponent of zeros: below that of every other number."""
_LARGEST_SCALE: Final = 2.0**100
"""Where the largest addend asks for more, all products are zeros."""


def exponents_of(numbers: Any, smallest: int, xp: Any) -> Any:
    """Return the exponents of numbers, at least ``smallest`` but for zeros: int16."""
    exponents = (xp.frexp(numbers)[1] - 1).astype(xp.int16)
    return xp.where(numbers == 0, xp.int16(_NO_EXPONENT), xp.maximum(exponents, smallest))


def add_products(
    total: Any, a: Any, b: Any, xp: Any, smallest: tuple[int, int], *, cuts_sum: bool = True
) -> Any:
    """Return ``total + a b^T`` of one instruction: float64 (m, n), from float32 (m, k) and (n, k).

    All are finite. ``smallest``: the exponents of the smallest normal numbers of ``a`` and ``b``.
    ``cuts_sum``: the sum keeps SUM_BITS bits; one that is rounded to 16 bits keeps all.
    """
    columns_of_a, columns_of_b = xp.ascontiguousarray(a.T), xp.ascontiguousarray(b.T)
    largest = exponents_of(total, _NO_EXPONENT + 1, xp)
    exponents = xp.empty_like(largest)
    for of_a, of_b in zip(
        exponents_of(columns_of_a, smallest[0], xp),
        exponents_of(columns_of_b, smallest[1], xp),
        strict=True,
    ):
        xp.add(of_a[:, None], of_b, out=exponents)
        xp.maximum(largest, exponents, out=largest)
    scale = _scale(largest, xp)
    narrow = xp.minimum(scale, _LARGEST_SCALE).astype(xp.float32)
    kept = xp.zeros(total.shape, xp.float32)  # whole numbers below 2^21
    product = xp.empty_like(kept)  # in one place: the loop is most of a verify on a GPU
    for of_a, of_b in zip(columns_of_a, columns_of_b, strict=True):
        xp.multiply(of_a[:, None], narrow, out=product)
        xp.multiply(product, of_b, out=product)
        kept += xp.trunc(product, out=product)
    result = (xp.trunc(total * scale) + kept) / scale
    if not cuts_sum:
        return result
    scale = _scale(exponents_of(result, _NO_EXPONENT + 1, xp), xp)
    return xp.trunc(result * scale) / scale


def _scale(exponents: Any, xp: Any) -> Any:
    """Return what makes the bits that are kept whole numbers: a power of two, by its bits."""
    biased = 1023 + SUM_BITS - exponents.astype(xp.int64)
    return (biased << 52).view(xp.float64)
