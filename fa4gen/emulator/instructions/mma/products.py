"""Sums of products that do not depend on the host.

The order in which a library adds depends on the CPU, and so do the last bits of float32 sums. Here
the result is the exact sum, rounded. Sums are formed in float64, where the products are exact, and
so are most sums; for the others there is a bound of the rounding error. Where that leaves open
which float32 is nearest, one sum in ten thousand or so, all is added exactly.
"""

from __future__ import annotations

from math import fsum, inf, nextafter
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

_Both: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]

# A sum of n products is off by at most n 2^-53 times the sum of their magnitudes, whatever the
# order; twice that covers the rounding of the bound.
_ROUNDING: Final = 2.0**-52
# Sums whose magnitudes add up to fewer of these units are exact in any order.
_EXACT: Final = 2.0**52
_ZERO: Final = np.float32(0)
_NAN: Final = np.uint32(0x7FFFFFFF).view(np.float32)
# Significant bits of the operand types; scaled ones have at most those of f16.
_BITS: Final = {"bf16": 8, "e4m3": 4, "e5m2": 3, "e2m3": 4, "e3m2": 3, "e2m1": 2}
MOST_BITS: Final = 11


def significant_bits(*kinds: str) -> int:
    """The most significant bits that numbers of floating-point operand types have."""
    return max(_BITS.get(kind, MOST_BITS) for kind in kinds)


def sums_of_products(
    a: NDArray[np.float32], b: NDArray[np.float32], bits: int = MOST_BITS
) -> NDArray[np.float32]:
    """``a b^T``: (..., m, n) from (..., m, k) and (..., n, k), rounded to nearest, ties to even.

    Operands have at most ``bits`` significant bits, of which there are at most 26, so that products
    are exact. Zero sums are +0, NaNs canonical.
    """
    left, right = a.astype(np.float64), b.astype(np.float64)
    total = np.matmul(left, right.swapaxes(-1, -2))
    result: NDArray[np.float32] = total.astype(np.float32)
    result += _ZERO  # which makes +0 of -0
    sizes = _sizes(left), _sizes(right)
    spans = sizes[0] / _units(a, bits), sizes[1] / _units(b, bits)
    if spans[0].max() * spans[1].max() < _EXACT:
        return result
    slack = sizes[0].max() * sizes[1].max() * (a.shape[-1] * _ROUNDING)
    open_ = (total - slack).astype(np.float32) != (total + slack).astype(np.float32)
    places = np.flatnonzero(open_)
    if len(places):
        _settle(places, (left, right), total, spans, sizes, result)
    return result


def _settle(
    places: NDArray[np.int64], operands: _Both, total: Any, spans: _Both, sizes: _Both, result: Any
) -> None:
    """Replace sums at some places (flat) that may not be rounded as the exact ones are."""
    rows, columns = total.shape[-2:]
    of_a, of_b = places // columns, places // (rows * columns) * columns + places % columns
    sums = total.reshape(-1)[places]
    result.reshape(-1)[places[np.isnan(sums)]] = _NAN
    slack = sizes[0].reshape(-1)[of_a] * sizes[1].reshape(-1)[of_b]
    slack *= operands[0].shape[-1] * _ROUNDING
    open_ = (sums - slack).astype(np.float32) != (sums + slack).astype(np.float32)
    open_ &= spans[0].reshape(-1)[of_a] * spans[1].reshape(-1)[of_b] >= _EXACT
    open_ &= np.isfinite(sums)
    left, right = (matrix.reshape(-1, matrix.shape[-1]) for matrix in operands)
    for products, place in zip(left[of_a[open_]] * right[of_b[open_]], places[open_], strict=True):
        result.reshape(-1)[place] = _exact(products.tolist())


def _exact(values: list[float]) -> float:
    """The sum rounded to odd: rounding it to float32 equals rounding the exact sum."""
    total = fsum(values)
    rest = fsum([*values, -total])
    if rest and not np.float64(total).view(np.int64) & 1:
        return nextafter(total, inf if rest > 0 else -inf)
    return total


def whole_sums(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.int64]:
    """``a b^T`` of whole numbers whose sums stay below 2^24, which float32 holds."""
    right = b.astype(np.float32, copy=False).swapaxes(-1, -2)
    sums = np.matmul(a.astype(np.float32, copy=False), right)
    return np.asarray(sums.astype(np.int64))


def added(old: NDArray[np.float32], sums: NDArray[np.float32]) -> NDArray[np.float32]:
    """Accumulators plus products; NaNs are canonical."""
    total = old + sums
    nan = np.isnan(total)
    if np.count_nonzero(nan):
        total[nan] = _NAN
    return total


def _sizes(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The norms of rows: the product of two is at least the sum of |a_i b_i|."""
    sizes: NDArray[np.float64] = np.sqrt(np.vecdot(rows, rows))
    return sizes


def _units(rows: NDArray[np.float32], bits: int) -> NDArray[np.float64]:
    """A power of two for each row of which its numbers are multiples."""
    # the exponent of the smallest number but zero, which becomes the largest here
    words = np.ascontiguousarray(rows).view(np.uint32) << np.uint32(1)
    words -= np.uint32(1)
    exponent = np.maximum(words.min(axis=-1) >> np.uint32(24), 1).astype(np.int32)
    units: NDArray[np.float64] = np.ldexp(1.0, exponent - (126 + bits))
    return units
