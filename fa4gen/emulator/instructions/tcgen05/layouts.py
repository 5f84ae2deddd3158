"""The places of D's elements in tensor memory (PTX ISA, "Data Path Layout Organization").

Every layout is a handful of rectangles. A from tensor memory is on the same lanes as the rows of D
that it contributes to, so that a layout that keeps rows of D on several lanes needs the rows of A
there several times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows and columns of D that form a rectangle of tensor memory.

    ``cta`` is 0, or 1 for the CTA of odd rank of a pair; ``row`` counts within the rows of that
    CTA; ``lane`` is absolute and ``column`` relative to D's address.
    """

    cta: int
    row: int
    rows: int
    first: int
    columns: int
    lane: int


@cache
def pieces(m: int, n: int, group: int, ws: bool, base: int) -> tuple[Piece, ...]:
    """The rectangles of an m by n result; ``base`` is the lane of D's address, 0 or 16.

    Layouts A and B (a pair of CTAs), D and F (one), and E and G of tcgen05.mma.ws.
    """
    if group == 2:
        if m == 256:
            return tuple(Piece(cta, 0, 128, 0, n, 0) for cta in range(2))
        half = n // 2
        return tuple(
            Piece(cta, 0, 64, side * half, half, 64 * side) for cta in range(2) for side in range(2)
        )
    if m == 128:
        return (Piece(0, 0, 128, 0, n, 0),)
    if ws:
        parts = 128 // m
        width = n // parts
        return tuple(Piece(0, 0, m, part * width, width, m * part) for part in range(parts))
    return tuple(Piece(0, 16 * part, 16, 0, n, base + 32 * part) for part in range(4))
