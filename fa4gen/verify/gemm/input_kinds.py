"""Kinds of numbers for matrix products: each strains one part of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.verify.rounding import LARGEST, from_bits

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.verify.gemm.groups import Part

Floats = NDArray[np.float32]
NUM_POSITIONS = 3067
"""Values that identify positions in 16 bits. Prime: equal values are never a power of two of rows
or columns apart."""

COUNTED = 48
"""Products of each sum that are not zero, about, of data that count: sums then have more bits than
bf16, and a single product is not far below a unit of theirs."""
COUNTED_SIZE = 40.0
"""The approximate size of such a product."""


NAN_COLUMNS = slice(5, None, 23)
"""Columns of B that are NaN: some of every block of 128."""

LARGE = {"bf16": 50, "fp16": 10, "fp8_e4m3": 6, "fp8_e5m2": 12, "fp4_e2m1": 1}
"""Exponents of large elements, whose sums fit float32."""
TINY = {"bf16": -50, "fp16": -14, "fp8_e4m3": -7, "fp8_e5m2": -14, "fp4_e2m1": -1}
"""Exponents of small ones, many of them subnormal in narrow types."""


@dataclass
class Draft:
    """N(0, 1) numbers, before a kind has changed them."""

    rng: np.random.Generator
    dtype: str
    b_dtype: str
    out_dtype: str
    a: Floats
    b: Floats
    c: Floats
    alpha: float
    steep: bool
    """An activation is applied to the result, which must then stay where that does not overflow."""
    parts: tuple[Part, ...] = ()
    """The groups of rows, if there are some."""
    steep_c: bool = False
    """C is part of what the activation is applied to."""

    def clip(self) -> None:
        """Keep inside the types' ranges, rounding included."""
        for array, dtype in (
            (self.a, self.dtype),
            (self.b, self.b_dtype),
            (self.c, self.out_dtype),
        ):
            if dtype != "fp32":
                limit = np.float32(LARGEST[dtype] * (1 - 2.0**-6))
                np.clip(array, -limit, limit, out=array, where=np.isfinite(array))


def _normal(draft: Draft) -> None:
    """N(0, 1) throughout."""


def _scale_both(draft: Draft, power: int) -> None:
    """Scale A and B, and undo it by alpha."""
    draft.a *= np.float32(2.0**power)
    draft.b *= np.float32(2.0**power)
    draft.alpha *= 2.0 ** (-2 * power)


def _large(draft: Draft) -> None:
    """Large elements, whose sums fit float32; alpha scales them back."""
    _scale_both(draft, min(LARGE[draft.dtype], LARGE[draft.b_dtype]))


def _tiny(draft: Draft) -> None:
    """Small elements, subnormal ones in fp16 and fp8; alpha scales them back."""
    _scale_both(draft, max(TINY[draft.dtype], TINY[draft.b_dtype]))


def _cancelling(draft: Draft) -> None:
    """Half of each sum nearly cancels the other half."""
    half = draft.a.shape[2] // 2
    draft.a[:, :, half : 2 * half] = draft.a[:, :, :half]
    draft.b[:, half : 2 * half] = -draft.b[:, :half]
    if half:
        draft.b[:, half] *= np.float32(0.75)


def _positive(draft: Draft) -> None:
    """Positive numbers only: sums that only grow, and whose truncation errors add up."""
    for array in (draft.a, draft.b, draft.c):
        np.abs(array, out=array)
    draft.alpha *= 2.0**-6


def _scaled(draft: Draft) -> None:
    """Rows of A and columns of B of very different magnitude: large ones must not hide an error."""
    narrow = draft.steep or draft.dtype != "bf16" or draft.out_dtype == "fp16"
    most = 1 if draft.dtype == "fp4_e2m1" else 3 if narrow else 12
    rows = draft.rng.integers(-most, most + 1, (*draft.a.shape[:2], 1))
    columns = draft.rng.integers(-most, most + 1, (draft.b.shape[0], 1, draft.b.shape[2]))
    draft.a *= np.exp2(rows).astype(np.float32)
    draft.b *= np.exp2(columns).astype(np.float32)


def _blocks_apart(draft: Draft) -> None:
    """Scales 2^60 apart in neighbouring blocks: none may get the scale of another."""


def _nan_scales(draft: Draft) -> None:
    """NaN for some scales: so are all sums that they are part of, and no others."""


def _poison_groups(draft: Draft, value: float) -> None:
    """Fill every other group's rows of A with ``value``, and one of its elements of B."""
    for part in draft.parts[1::2]:
        rows = slice(part.first, part.first + part.rows)
        draft.a[part.batch % len(draft.a), rows, part.depth] = value
        draft.b[part.b % len(draft.b), part.depth][:1] = value


def _nan_groups(draft: Draft) -> None:
    """NaN in every other group's rows, B and scales: so are its results, and no others."""
    if draft.dtype != "fp4_e2m1":  # which has none, but its scales have
        _poison_groups(draft, np.nan)


def _inf_groups(draft: Draft) -> None:
    """Infinity in every other group's rows and B."""
    _poison_groups(draft, np.inf)


def _nan_columns(draft: Draft) -> None:
    """NaN in some columns of B: they do not count for the scales of what is around them."""
    draft.b[:, :, NAN_COLUMNS] = np.nan


def _positions(draft: Draft) -> None:
    """Zeros in A, and a C that identifies positions: a residual from a wrong place shows."""
    draft.a[:] = 0
    index = np.arange(draft.c.size).reshape(draft.c.shape)
    if draft.steep_c:
        draft.c[:] = (index % NUM_POSITIONS) * (8 / NUM_POSITIONS) - 4
    elif draft.out_dtype == "fp32":
        draft.c[:] = index % 2**24  # up to here float32 holds every one
    else:
        # The index among the numbers of the type, from 2^-10 (fp16: 2^-2) upwards.
        first = {"bf16": 0x3A80, "fp16": 0x3400}[draft.out_dtype]
        bits = (first + index % NUM_POSITIONS).astype(np.uint16)
        draft.c[:] = from_bits(bits, draft.out_dtype)


def _counting(draft: Draft) -> None:
    """Small whole numbers, whose sums are exact: each product counts."""
    rng, k = draft.rng, draft.a.shape[2]
    share = min(1.0, COUNTED / max(k, 1))
    draft.a[:] = _whole(rng, 7, draft.a.shape)
    draft.a *= rng.random(draft.a.shape, np.float32) < share
    draft.b[:] = _whole(rng, 15, draft.b.shape)
    draft.c[:] = _whole(rng, 3 if draft.steep_c else 15, draft.c.shape)
    if draft.steep:  # sums are as large as those of other data
        draft.alpha *= 2.0 ** round(-np.log2(COUNTED_SIZE * share**0.5))


def _whole(rng: np.random.Generator, most: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Draw whole numbers from -most to most, but no zeros."""
    signs: NDArray[np.float64] = rng.choice((-1.0, 1.0), shape)
    return signs * rng.integers(1, most + 1, shape)


KINDS: dict[str, Callable[[Draft], None]] = {
    "normal": _normal,
    "large": _large,
    "tiny": _tiny,
    "cancelling": _cancelling,
    "positive": _positive,
    "scaled": _scaled,
    "positions": _positions,
    "counting": _counting,
    "blocks_apart": _blocks_apart,
    "nan_scales": _nan_scales,
    "nan_groups": _nan_groups,
    "inf_groups": _inf_groups,
    "nan_columns": _nan_columns,
}
SCALED_KINDS = ("blocks_apart", "nan_scales")
"""Kinds that only scales of blocks differ in."""
GROUP_KINDS = ("nan_groups", "inf_groups")
"""Kinds for groups of rows."""
QUANTISED_KINDS = ("nan_columns",)
"""Kinds for outputs that are quantised."""


def kind_meaning(name: str) -> str:
    """Return the first line of a kind's description."""
    return (KINDS[name].__doc__ or "").strip().splitlines()[0]
