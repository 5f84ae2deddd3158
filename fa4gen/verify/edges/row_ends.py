"""The ends of the keys that rows see, relative to blocks of keys: for tiles of query rows.

A tile loads the blocks from the first key of its first row to the last key of its last row, and
masks those that some of its rows do not see as a whole. Whether the ends are rounded right shows
where they are on the boundary of a block, one key before it, or one past it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fa4gen.runtime.schedule import WARPGROUP_ROWS, ProblemSize, plan_schedule
from fa4gen.verify.edges.edge import RELATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fa4gen.designs.common.attention_model import AttentionPlan

PLACES: Final = ("first", "inner", "last")
ENDS: Final = ("end", "begin")
MASKED: Final = ("right mask", "left mask")
CLIPS: Final = {
    "end": {-1: "below key 0", 0: "at key 0", 1: "one past key 0"},
    "begin": {-1: "below key 0", 0: "at key 0", 1: "one past key 0"},
}
MANY_BLOCKS: Final = 16
"""The blocks of a window from which on the place of a tile and the relation to a block are edges of
their own."""


@dataclass(frozen=True)
class Rows:
    """Rows that are worked on together, and the place of their tile among the head's."""

    first: int
    last: int
    places: tuple[str, ...]


def tiles_of(
    plan: AttentionPlan, rows: int, keys: int, heads: int, multiprocessors: int
) -> list[Rows]:
    """Return the tiles of a head of ``rows`` queries, as the schedule divides it."""
    step = plan.cluster_queries
    begins = list(range(0, rows, step))
    if plan.mixed_tile_heights and not plan.is_ragged:
        size = ProblemSize(1, heads, 1, rows, keys)
        short = plan_schedule(plan, size, multiprocessors).num_short_tiles
        low = step - WARPGROUP_ROWS // plan.tile_heads
        begins = [low * i for i in range(short)]
        begins += list(range(low * short, rows, step))
        begins = [begin for begin in begins if begin < rows]
    ends = [*begins[1:], rows]
    count = len(begins)
    return [
        Rows(begin, end - 1, _places(i, count))
        for i, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]


def parts_of(plan: AttentionPlan, tiles: list[Rows]) -> list[Rows]:
    """Return the parts of tiles, each of which masks its own blocks.

    Those without all of their rows are left out: where they end is beyond the rows.
    """
    step = plan.part_rows // plan.tile_heads
    return [
        Rows(begin, begin + step - 1, tile.places)
        for tile in tiles
        for begin in range(tile.first, tile.last + 2 - step, step)
    ]


def _places(index: int, count: int) -> tuple[str, ...]:
    places = ("first",) * (index == 0) + ("last",) * (index == count - 1)
    return places or ("inner",)


def quantities(
    plan: AttentionPlan, rows: list[Rows], diagonals: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """Return ends by name, (diagonals, rows): one past the last key of the last row, and so on.

    Only those that the mask has, neither clipped at key 0 nor at the number of keys.
    """
    mask = plan.mask
    first = np.array([one.first for one in rows])[None, :] + diagonals[:, None]
    last = np.array([one.last for one in rows])[None, :] + diagonals[:, None]
    found = {}
    if mask.has_right_end:
        found["end"], found["right mask"] = mask.last(last) + 1, mask.last(first) + 1
    if mask.has_left_end:
        found["begin"], found["left mask"] = mask.first(first), mask.first(last)
    return found


def reached(
    plan: AttentionPlan, rows: int, keys: int, heads: int, multiprocessors: int
) -> Iterator[str]:
    """Yield the names of the edges that a sequence of these queries and keys reaches."""
    if not rows or not keys:
        return
    tiles = tiles_of(plan, rows, keys, heads, multiprocessors)
    for relation, words in RELATIONS.items():
        if keys % plan.BN == relation % plan.BN:
            yield f"keys end {words}"
    for unit, units in (("tile", tiles), ("part", parts_of(plan, tiles))):
        found = quantities(plan, units, np.array([keys - rows]))
        for name, values in found.items():
            for one, value in zip(units, values[0].tolist(), strict=True):
                yield from _names(plan, unit, name, one, value, keys)


def _names(
    plan: AttentionPlan, unit: str, name: str, rows: Rows, value: int, keys: int
) -> Iterator[str]:
    if unit == "tile":
        if name in CLIPS and value in CLIPS[name]:
            yield f"{name} {CLIPS[name][value]}"
        if name == "end" and value - keys in KEYS_END:
            yield f"end {KEYS_END[value - keys]}"
    is_last = "last" in rows.places and name == "end"
    if not 0 < value < keys + is_last:
        return
    for relation, words in RELATIONS.items():
        if value % plan.BN != relation % plan.BN:
            continue
        if unit == "part":
            yield f"{name} of a part {words}"
        elif name in ENDS:
            for place in rows.places:
                yield from end_names(plan, name, place, words)


KEYS_END: Final = {0: "where the keys end", 1: "one past the keys'"}


def end_names(plan: AttentionPlan, name: str, place: str, words: str) -> tuple[str, ...]:
    """Return the names of the edges of an end in a place: one, or two where both would cost much.

    A tile whose rows see many blocks is expensive, and three of them more.
    """
    span = plan.mask.span
    if name == "begin" and (span is None or span > MANY_BLOCKS * plan.BN):
        return f"{name} of a tile {words}", f"{name} inside of the keys, {place} tile"
    return (f"{name} of the {place} tile {words}",)
