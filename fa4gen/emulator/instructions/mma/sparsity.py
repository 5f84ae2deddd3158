"""Sparse matrices A: half of the elements, and metadata that says where they belong.

PTX ISA, "Sparse matrix storage": four bits of metadata for each chunk of a row. A chunk of four
places has two elements, and two bits for the place of each, those of the first one lowest. A chunk
of two places (TF32) has one element, and 0b0100 or 0b1110 for the first or the second place.

In ``mma.sp`` and ``wgmma.mma_async.sp`` lanes ``4 g`` to ``4 g + 3`` of a warp hold the metadata of
its rows ``g`` and ``g + 8``. Where one or two of the lanes have it, the low half of a register is
for row ``g`` and the high half for row ``g + 8``, and the second lane continues along K; where all
four have it, the first two are for one row each, and the others continue along K.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_FIRST, _SECOND = 0b0100, 0b1110
_NIBBLES: Final = np.arange(0, 64, 4, dtype=np.uint64)
_IN_ORDER: Final = frozenset(a | b << 2 for b in range(4) for a in range(b))
_ANY_ORDER: Final = frozenset(a | b << 2 for b in range(4) for a in range(4) if a != b)
# types that tcgen05.mma takes, too
TCGEN05: Final = _IN_ORDER | {0b0110}


def valid_codes(pairs: bool, ordered: bool) -> frozenset[int]:
    """The codes of a chunk that mean something; ``pairs`` of places, or one of two."""
    if not pairs:
        return frozenset({_FIRST, _SECOND})
    return _IN_ORDER if ordered else _ANY_ORDER


def nibbles(words: NDArray[Any], count: int) -> NDArray[np.uint8]:
    """The lowest ``count`` codes of unsigned words: (..., count)."""
    wide = words.astype(np.uint64)[..., None]
    codes: NDArray[np.uint8] = (wide >> _NIBBLES[:count] & np.uint64(15)).astype(np.uint8)
    return codes


def lanes_codes(words: NDArray[np.uint32], threads: int, selector: int) -> NDArray[np.uint8]:
    """The codes of the rows of warps, (warps, 16, chunks), from a register, (warps, 32).

    ``threads`` of each four lanes have metadata, the ``selector``-th such ones of them.
    """
    groups = words.reshape(-1, 8, 4)
    warps = len(groups)
    if threads == 4:
        codes = nibbles(groups.reshape(warps, 8, 2, 2), 8)
        return codes.transpose(0, 3, 1, 2, 4).reshape(warps, 16, -1)
    chosen = groups[:, :, selector * threads : (selector + 1) * threads]
    halves = np.stack([chosen & np.uint32(0xFFFF), chosen >> np.uint32(16)], axis=1)
    return nibbles(halves, 4).reshape(warps, 16, -1)


def expanded(
    values: NDArray[Any], codes: NDArray[np.uint8], pairs: bool, width: int = 1
) -> NDArray[Any]:
    """Rows with zeros where ``values``, (..., elements), has none; (..., 2 elements).

    Elements of ``width`` places move together.
    """
    *rows, chunks = codes.shape
    if pairs:
        inside = np.stack([codes & 3, codes >> 2], axis=-1)
        places = inside + 4 * np.arange(chunks)[:, None]
    else:
        places = ((codes == _SECOND) + 2 * np.arange(chunks))[..., None]
    index = places.reshape(*rows, -1, 1).astype(np.int64)
    groups = values.reshape(*rows, -1, width)
    whole = np.zeros((*rows, 2 * groups.shape[-2], width), values.dtype)
    np.put_along_axis(whole, np.broadcast_to(index, groups.shape), groups, axis=-2)
    return whole.reshape(*rows, -1)


def first_wrong(codes: NDArray[np.uint8], valid: frozenset[int]) -> str:
    """The first error in codes, in words; empty if there is none."""
    bad = ~np.isin(codes, sorted(valid))
    if not bad.any():
        return ""
    where = np.argwhere(bad)[0]
    code = int(codes[tuple(where)])
    return (
        f"sparsity metadata {code:#06b} of row {where[-2]}, chunk {where[-1]}; "
        f"{', '.join(f'{one:04b}' for one in sorted(valid))} have a meaning"
    )
