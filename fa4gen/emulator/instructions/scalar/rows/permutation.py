"""prmt: bytes of two words, chosen by a third (PTX ISA, "prmt")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

# The bytes each mode takes, by the selector's low two bits; byte 0 of the result first.
_MODES: Final[dict[str, tuple[tuple[int, int, int, int], ...]]] = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0,) * 4, (1,) * 4, (2,) * 4, (3,) * 4),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def permute(selector: int, mode: str | None) -> Callable[[Any, Any], Any]:
    """The function of two words that a constant selector stands for.

    Bytes that move by the same distance move together: 0x5410 is two masks, a shift and an or.
    """
    if mode is None:
        chosen = [selector >> 4 * place & 15 for place in range(4)]
    else:
        chosen = list(_MODES[mode][selector & 3])
    moves: dict[tuple[bool, int], int] = {}
    signs = []
    for place, nibble in enumerate(chosen):
        byte = nibble & 7
        if nibble & 8:
            signs.append((place, byte))
        else:
            key = (byte >= 4, place - byte % 4)
            moves[key] = moves.get(key, 0) | 0xFF << 8 * place
    steps = [
        (second, np.uint32(8 * abs(distance)), distance > 0, np.uint32(kept))
        for (second, distance), kept in moves.items()
    ]

    def apply(a: Any, b: Any) -> Any:
        result: Any = None
        for second, shift, left, kept in steps:
            word = b if second else a
            if shift:
                word = word << shift if left else word >> shift
            word = word & kept
            result = word if result is None else result | word
        for place, byte in signs:
            word = np.asarray(b if byte >= 4 else a).view(np.int32)
            spread = (word << np.int32(24 - 8 * (byte % 4))) >> np.int32(31)
            word = spread.view(np.uint32) & np.uint32(0xFF << 8 * place)
            result = word if result is None else result | word
        return result

    return apply


def permute_by(a: Any, b: Any, selector: Any, mode: str | None) -> Any:
    """Permute bytes where each lane has a selector of its own."""
    if mode is not None:
        choices = [permute(choice, mode)(a, b) for choice in range(4)]
        return np.choose(selector & np.uint32(3), choices)
    pair = (np.asarray(b).astype(np.uint64) << np.uint64(32)) | a
    result: Any = np.uint32(0)
    for place in range(4):
        nibble = (selector >> np.uint32(4 * place)) & np.uint32(15)
        shift = ((nibble & np.uint32(7)) << np.uint32(3)).astype(np.uint64)
        byte = ((pair >> shift) & np.uint64(0xFF)).astype(np.uint32)
        sign = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        byte = np.where(nibble & np.uint32(8), sign, byte)
        result = result | (byte << np.uint32(8 * place))
    return result
