"""The edges of kernels whose CTAs share keys: units, and shares of the line of all units.

The units of all tiles are a line, of which each CTA takes an even share; or each tile is cut into
splits of a fixed number of keys. See ``decode/line.cuh.j2``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fa4gen.verify.cases import COUNTING, of_sequences
from fa4gen.verify.edges.edge import RELATIONS, Edge
from fa4gen.verify.edges.lines import MOST_IDLE, line_of, sharing, units_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.decode_model import SharedKeysPlan
    from fa4gen.verify.cases import Case

IDLE: Final = "more CTAs than shares"
JOINED: Final = "pieces of which several threads join some each"
SHARED: Final = 4
"""The number of these threads: cases with few pieces have fewer."""

SHARES: Final = {
    "a tile of one piece": "what needs no combining is combined, or not written",
    "a tile of two pieces": "one of them is left out",
    "a tile of three pieces and more": "those between the first and the last are left out",
    "a share that ends inside of a tile": "the next share begins a unit too early or too late",
    "a share of several tiles": "the second one's rows are those of the first",
    "shares of different lengths": "those that are a unit longer begin where others do",
    "more sequences than a warp has lanes": "sums of lengths are those of one warp",
    IDLE: "a CTA without a share takes places past the line",
    JOINED: "those of a thread are left out",
}

OF_EVEN_SHARES: Final = ("a share of several tiles", "shares of different lengths")


def share_edges(plan: SharedKeysPlan) -> Iterator[Edge]:
    """Yield the edges of units and shares."""
    ends = ["keys end"]
    if plan.mask.has_right_end and not plan.mask.tests_keys:
        ends.append("the keys that all rows see end")
    for name in ends:
        for words in RELATIONS.values():
            yield Edge(f"{name} {words} of a unit", "a unit is left out, or not masked")
            if name != "keys end":
                yield Edge(f"{name} {words} of a block", "a block is not masked, or needlessly")
    for name, why in SHARES.items():
        none = ""
        if name.startswith("more sequences") and not plan.key_lengths:
            none = "lengths are the same for all sequences"
        if plan.split_blocks and name in OF_EVEN_SHARES:
            none = "a tile's splits have a fixed number of keys"
        if name == IDLE:
            none = _never_idle(plan)
        if name == JOINED and sharing(plan, 1, _joined_pieces(plan)) < SHARED:
            none = "a row's quads are too many for threads to share them"
        yield Edge(name, why, none)


def _never_idle(plan: SharedKeysPlan) -> str:
    """Return the reason why each CTA has a share; "" if one may have none."""
    by_blocks = plan.split_blocks or plan.unit_keys == plan.BN
    differ = plan.key_lengths or plan.values_in_keys or plan.mask.has_left_end
    if by_blocks and not differ and plan.launch.cluster == plan.ctas_per_tile:
        return "no more CTAs are launched than the line has places"
    return ""


def _joined_pieces(plan: SharedKeysPlan) -> int:
    """Return the pieces of a tile of one row that its case has: few where each is long."""
    return SHARED if plan.split_blocks else 2 * SHARED


def reached(plan: SharedKeysPlan, case: Case) -> Iterator[str]:
    """Yield the names of the edges that a case is at."""
    if not case.query_heads or not case.batch or not case.query_rows:
        return
    for rows, keys in set(case.sequences):
        for relation, words in RELATIONS.items():
            if keys and keys % plan.unit_keys == relation % plan.unit_keys:
                yield f"keys end {words} of a unit"
            if plan.mask.has_right_end and not plan.mask.tests_keys and keys >= rows:
                end = min(keys, plan.mask.last(keys - rows) + 1)
                if 0 < end < keys and end % plan.unit_keys == relation % plan.unit_keys:
                    yield f"the keys that all rows see end {words} of a unit"
                whole = case.multiprocessors == plan.launch.cluster  # blocks begin with the keys
                if whole and 0 < end < keys and end % plan.BN == relation % plan.BN:
                    yield f"the keys that all rows see end {words} of a block"
    if plan.key_lengths and len(case.sequences) > 32:
        yield "more sequences than a warp has lanes"
    yield from _pieces(plan, case)


def _pieces(plan: SharedKeysPlan, case: Case) -> Iterator[str]:
    """Yield the edges of how the line is cut."""
    line = line_of(plan, case)
    pieces: tuple[int, ...] = line.tiles if plan.split_blocks else line.pieces
    if line.idle:
        yield IDLE
    if plan.split_blocks:
        units = [units_of(plan, rows, keys) for rows, keys in case.sequences]
        if any(count % plan.split_units and count > plan.split_units for count in units):
            yield "a share that ends inside of a tile"
    else:
        if line.uneven:
            yield "shares of different lengths"
        if max(pieces) > 1:
            yield "a share that ends inside of a tile"
        if line.shares < len(pieces):
            yield "a share of several tiles"
    for count, words in ((1, "one piece"), (2, "two pieces")):
        if count in pieces:
            yield f"a tile of {words}"
    if max(pieces) > 2:
        yield "a tile of three pieces and more"
    if len(pieces) == 1 and case.data == COUNTING:
        rows = min(plan.packed_rows, case.query_heads // case.key_heads * case.query_rows)
        if SHARED <= sharing(plan, rows, pieces[0]) <= pieces[0]:
            yield JOINED


def share_problems(plan: SharedKeysPlan) -> Iterator[Case]:
    """Yield small problems around a unit, with one row and several."""
    unit = plan.unit_keys
    for rows in (1, 3):
        for keys in (unit - 1, unit, unit + 1, 2 * unit - 1, 2 * unit + 1):
            for past in {0, rows - 1}:
                yield _case(plan, (rows, keys + past))
    for relation in RELATIONS:
        keys = plan.BN + relation + 2
        yield _case(plan, (3, keys), multiprocessors=plan.launch.cluster)
    for count in (2, 3, 5):
        several = plan.line_step * plan.BN * count
        yield _case(plan, (2, several + 9), multiprocessors=count * plan.ctas_per_tile)
        yield _case(plan, (1, several + 9), (1, 5), multiprocessors=2 * plan.ctas_per_tile)
    pieces = _joined_pieces(plan)
    keys = pieces * plan.line_step * plan.BN - 3
    yield _case(plan, (1, keys), multiprocessors=pieces * plan.ctas_per_tile)
    yield from _idle_problems(plan)
    if plan.key_lengths:
        yield _case(plan, *((1, 1 + i % 7) for i in range(40)))


def _idle_problems(plan: SharedKeysPlan) -> Iterator[Case]:
    """Yield problems with more CTAs than shares: by lengths, by units, by pairs, by tiles."""
    chip = 8 * plan.launch.cluster
    if plan.key_lengths:  # the launch is for sequences of the same length
        yield _case(plan, (1, 5), (1, 3 * plan.line_step * plan.BN), multiprocessors=chip)
    few = _case(plan, (1, plan.BN + plan.unit_keys), multiprocessors=chip)
    yield replace(few, name=f"{few.name}_4", query_heads=4, key_heads=4)
    yield _case(plan, (1, 3 * plan.BN), multiprocessors=2 * plan.launch.cluster)
    if plan.values_in_keys:  # five shares for each of three tiles, for 16 CTAs
        many = _case(plan, (1, 5 * plan.BN + 9), multiprocessors=MOST_IDLE * plan.launch.cluster)
        yield replace(many, name=f"{many.name}_3", query_heads=3, key_heads=3)


def _case(
    plan: SharedKeysPlan, *pairs: tuple[int, int], multiprocessors: int | None = None
) -> Case:
    rows, keys = (max(pair[i] for pair in pairs) for i in (0, 1))
    name = f"edges/{len(pairs)}x{rows}x{keys}"
    if multiprocessors:
        name += f"_{multiprocessors}"
    more = {"data": COUNTING, "multiprocessors": multiprocessors}
    return of_sequences(plan, name, *pairs, heads=(1, 1), **more)
