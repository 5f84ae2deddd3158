"""The edges among row ends of a plan, those without a problem, and problems for the others.

An end is a function of a row's position, which is its number plus the excess of keys over queries.
So both are found by evaluating the mask on many positions at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fa4gen.verify.edges.edge import RELATIONS, Edge
from fa4gen.verify.edges.row_ends import (
    CLIPS,
    ENDS,
    KEYS_END,
    PLACES,
    end_names,
    parts_of,
    quantities,
    tiles_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fa4gen.designs.common.attention_model import AttentionPlan

WIDEST: Final = 16_384
"""Keys of a window beyond which no problem is tried: a tile would take too long."""
WHY: Final = {
    "end": "the block with the last key that rows see is not loaded, or one more is",
    "begin": "the block with the first key that rows see is not loaded, or one more is",
    "right mask": "a block whose last keys some rows do not see is not masked, or needlessly",
    "left mask": "a block whose first keys some rows do not see is not masked, or needlessly",
}


def row_edges(plan: AttentionPlan) -> Iterator[Edge]:
    """Yield the edges of the keys that rows see; once by name."""
    for words in RELATIONS.values():
        yield Edge(f"keys end {words}", "keys past the end count, or the last ones do not")
    positions, values = _values(plan)
    for name, found in values.items():
        seen = found > 0
        within = seen & (found <= positions + 1)
        for relation, words in RELATIONS.items():
            at = found % plan.BN == relation % plan.BN
            none = _none(plan, name, words)
            yield Edge(f"{name} of a part {words}", WHY[name], "" if (at & seen).any() else none)
            for place in PLACES if name in ENDS else ():
                possible = at & (within if (name, place) == ("end", "last") else seen)
                for edge in end_names(plan, name, place, words):
                    yield Edge(edge, WHY[name], "" if possible.any() else none)
        for value, words in CLIPS.get(name, {}).items():
            none = "" if (found == value).any() else _none(plan, name, words)
            yield Edge(f"{name} {words}", "it is not clipped at key 0", none)
    if "end" in values:
        furthest = _furthest(positions, values["end"])
        for past, words in KEYS_END.items():
            none = "" if furthest >= past else "no row sees a key past its own position"
            yield Edge(f"end {words}", "it is not clipped at the number of keys", none)


def _none(plan: AttentionPlan, name: str, words: str) -> str:
    return f"{name} {words}: of no row whose position is below {_limit(plan)}"


def _limit(plan: AttentionPlan) -> int:
    """Return the position from which on rows are not tried."""
    step = plan.cluster_queries
    return 2 * min(plan.mask.span or 0, WIDEST) + 8 * plan.BN + 4 * step


def _values(plan: AttentionPlan) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
    """Return positions, and at each one past the last key that is seen, and the first."""
    mask = plan.mask
    positions = np.arange(-4 * plan.cluster_queries, _limit(plan))
    found = {}
    if mask.has_right_end:
        found["end"] = found["right mask"] = mask.last(positions) + 1
    if mask.has_left_end:
        found["begin"] = found["left mask"] = mask.first(positions)
    return positions, found


def _furthest(positions: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
    """Return how many keys past its own position a row sees at most."""
    return int((ends - 1 - positions)[positions >= 0].max())


def row_problems(plan: AttentionPlan, multiprocessors: int) -> Iterator[tuple[int, int]]:
    """Yield queries and keys of problems, the fewest keys for each end of each tile and part."""
    step = plan.cluster_queries
    part = plan.part_rows // plan.tile_heads
    for keys in (plan.BN - 1, plan.BN, plan.BN + 1):
        yield 3, keys
    lengths = {1, part, part + 1, step, step + 1, 2 * step + 1, 2 * step + part, 3 * step}
    positions, ends = _values(plan)
    if "end" in ends:  # rows after a tile that sees as many keys past its last row
        past = _furthest(positions, ends["end"])
        lengths |= {step + more for more in (past - 1, past) if 0 < more < step}
    for rows in sorted(lengths):
        diagonals = np.arange(1 - rows, _limit(plan) - rows)
        tiles = tiles_of(plan, rows, rows, 1, multiprocessors)
        for units in (tiles, parts_of(plan, tiles)):
            for name, values in quantities(plan, units, diagonals).items():
                yield from _first_with(plan, rows, diagonals, name, values)


def _first_with(
    plan: AttentionPlan,
    rows: int,
    diagonals: NDArray[np.int64],
    name: str,
    values: NDArray[np.int64],
) -> Iterator[tuple[int, int]]:
    """Yield the problems with the fewest keys that have an end in each relation."""
    keys = (rows + diagonals)[:, None]
    wanted = [
        (values > 0) & (values < keys + (name == "end")) & (values % plan.BN == relation % plan.BN)
        for relation in RELATIONS
    ]
    if name in CLIPS:
        wanted += [values == value for value in CLIPS[name]]
    if name == "end":
        wanted += [values - keys == past for past in KEYS_END]
    for one in wanted:
        for column in one.T:
            if column.any():
                yield rows, rows + int(diagonals[column.argmax()])
