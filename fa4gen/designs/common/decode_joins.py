"""The number of partial results that a thread joins, as ``Sharing`` of the kernels has it.

A CTA combines a slice of each of the two tiles that its share has a part of, by quads of four
columns. Where there are fewer quads than threads, threads share the pieces of a quad.
"""

from __future__ import annotations

from typing import Final

MOST_SHARING: Final = 32
"""Threads of a quad, at most."""
MOST_NEIGHBOURS: Final = 12
"""Pieces that are tried of a tile whose neighbour has about as many."""
MOST_PIECES: Final = 26
"""Pieces of a tile that are tried next to a tile of two."""


def joined_by_thread(quads: int, threads: int, *pieces: int) -> int:
    """Return how many pieces the first thread of a quad joins.

    ``quads``: of a whole tile; ``pieces``: of each tile that the CTA has a slice of.
    """
    return joined_at_once(quads, threads, 1, *pieces)


def joined_at_once(quads: int, threads: int, at_once: int, *pieces: int) -> int:
    """Return how many pieces a thread joins of any of its quads ``at_once``, the fewest of them.

    Of the i-th quad of each round the thread with the most pieces counts; where none has such a
    quad, no piece is joined.
    """
    owners = [count for count in pieces for _ in range(-(-quads // count))]
    sharing = threads_of_quad(len(owners), threads, max(pieces))
    width = threads // sharing
    most = [0] * at_once
    for item, count in enumerate(owners):
        turn = item // width % at_once
        most[turn] = max(most[turn], -(-count // sharing))
    return min(most)


def threads_of_quad(quads: int, threads: int, pieces: int) -> int:
    """Return how many threads share the pieces of each of a CTA's quads."""
    sharing = 1
    while sharing < min(MOST_SHARING, pieces) and 2 * sharing * quads <= threads:
        sharing *= 2
    return sharing


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


def pieces_to_join(quads: int, threads: int, at_once: int, wanted: int) -> tuple[int, int]:
    """Return the pieces of two neighbours of which threads join ``wanted`` of each quad at once.

    The first has two pieces, or more where no second one then suffices.
    """
    tried = ((a, b) for a in range(2, MOST_NEIGHBOURS) for b in range(3, MOST_PIECES))
    return next(
        (pair for pair in tried if joined_at_once(quads, threads, at_once, *pair) >= wanted), (2, 3)
    )
