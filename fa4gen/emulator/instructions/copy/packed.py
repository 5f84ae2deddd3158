"""Packed elements of 4 and 6 bits in copies (PTX ISA, "Padding and alignment of sub-byte types").

In global memory elements follow each other without gaps. A load of a padded type puts sixteen of
them into 16 bytes of shared memory: the bytes from global memory, then padding, whose contents are
undefined. A store of 6-bit elements takes each from the low bits of a byte of its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.boxes import Chunks

_GROUP: Final = 16  # elements that are copied together
_PADDING: Final = 0xA5  # any value: nothing may depend on it
_SIX: Final = 6


def padded(chunks: Chunks, bits: int) -> Chunks:
    """Lines as a load lays them down in shared memory."""
    groups = chunks.view(np.uint8).reshape(-1, 2 * bits)
    wide = np.full((len(groups), _GROUP), _PADDING, np.uint8)
    wide[:, : 2 * bits] = groups
    return wide.reshape(-1).view(np.complex128)


def squeezed(chunks: Chunks) -> Chunks:
    """Lines of 6-bit elements, one in each byte of shared memory, as a store writes them."""
    bits = np.unpackbits(chunks.view(np.uint8)[:, None], axis=1, bitorder="little")[:, :_SIX]
    packed: NDArray[np.uint8] = np.packbits(bits.reshape(-1), bitorder="little")
    return packed.view(np.complex128)
