"""How many partial results a thread joins that combines a tile, as ``Sharing`` of the kernels.

A CTA combines a slice of each of the two tiles that its share has a part of, by quads of four
columns. Where there are fewer quads than threads, threads share the pieces of a quad.
"""

from __future__ import annotations

from typing import Final

MOST_SHARING: Final = 32
"""Threads of a quad, at most."""
MOST_NEIGHBOURS: Final = 12
"""Pieces of a tile that are tried where all tiles have one length."""
MOST_PIECES: Final = 26
"""Pieces of a tile that are tried next to a tile of two."""


def joined_by_thread(quads: int, threads: int, *pieces: int) -> int:
    """Return how many pieces the first thread of a quad joins.

    ``quads``: of a whole tile; ``pieces``: of each tile that the CTA has a slice of.
    """
    items = sum(-(-quads // count) for count in pieces)
    sharing = 1
    while sharing < min(MOST_SHARING, max(pieces)) and 2 * sharing * items <= threads:
        sharing *= 2
    return -(-max(pieces) // sharing)


def most_joined_by_neighbours(quads: int, threads: int, wanted: int) -> tuple[int, int]:
    """Return the most pieces that a thread joins where all tiles have one length, and of how many.

    Two tiles next to each other then have as many pieces, or one more. Of numbers of pieces with
    the same result, or ``wanted`` and more, it is the least.
    """
    best = (0, 0)
    for pieces in range(2, MOST_NEIGHBOURS):
        found = min(wanted, joined_by_thread(quads, threads, pieces, pieces + 1))
        if found > best[0]:
            best = (found, pieces)
    return best


def pieces_to_join(quads: int, threads: int, wanted: int) -> int:
    """Return how many pieces a tile has next to one of two, so that threads join ``wanted``."""
    tried = range(3, MOST_PIECES)
    return next((n for n in tried if joined_by_thread(quads, threads, 2, n) >= wanted), 3)
