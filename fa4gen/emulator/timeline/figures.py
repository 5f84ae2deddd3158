"""The figures of a timeline: use of the tensor core, waits, and the nearest limit.

All figures are of a window of the steady state: from the end of the first product (that of queries
and keys) of an early block, a quarter into the loop and the second at least, to the end of the
second last's, so that a block's work of every kind is counted once for each block. Times are cycles
of the cost model.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from fa4gen.emulator.timeline.costs import PIPES, SHARED_BYTES

TENSOR_CORE: Final = "tensor core"
FIRST, SECOND, ONLY = "QK", "PV", "product"
_QUARTERS: Final = 4
_SHORT: Final = 0.5


@dataclass(frozen=True, slots=True)
class Track:
    """A line of the trace: a unit's, or that of a warp with a role."""

    title: str
    warp: int | None = None
    role: str = ""
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """An event on a track from ``begin`` to ``end``."""

    track: Track
    name: str
    kind: str
    begin: float
    end: float
    args: Mapping[str, Any]

    def overlap(self, begin: float, end: float) -> float:
        """The length of its overlap with a span of time."""
        return max(min(self.end, end) - max(self.begin, begin), 0.0)


@dataclass(frozen=True, slots=True)
class Chain:
    """Products in a row by one warp on one accumulator; ``label`` says which of attention's two."""

    label: str
    place: tuple[int, int]
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Gaps:
    """The times without a product: the next product, and the wait of the issuing warp before it."""

    count: int
    total: float
    longest: float
    before: dict[str, float]
    waiting_for: dict[str, float]


@dataclass(frozen=True, slots=True)
class Role:
    """Shares of the time of a role's warps, of at most one warpgroup; ``kinds`` sum to 1."""

    name: str
    warps: int
    waiting: float
    kinds: dict[str, float]
    longest_wait: str


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures from ``begin`` to ``end``, a window with ``blocks`` blocks of keys.

    ``tensor_busy`` is a share; ``limits`` are the cycles that each resource is used for a block,
    and ``bound`` is the largest of them; ``shared_bytes`` are moved for a block. Reads of shared
    memory by the tensor core, and transfers by copies and threads, are two limits: whether they
    delay each other is not known.
    """

    begin: float
    end: float
    blocks: int
    cycles_per_block: float
    tensor_busy: float
    limits: dict[str, float]
    bound: str
    shared_bytes: float
    gaps: Gaps
    roles: tuple[Role, ...]


def read_events(document: Mapping[str, Any], cta: int = 0) -> tuple[Event, ...]:
    """The events of a CTA in a trace, in the order they begin."""
    tracks: dict[int, Track] = {}
    for one in document["traceEvents"]:
        if one["ph"] == "M" and one["pid"] == cta:
            facts = one["args"]
            tracks[one["tid"]] = Track(
                facts["name"], facts.get("warp"), facts.get("role", ""), facts.get("unit", "")
            )
    found = [
        Event(
            tracks[one["tid"]], one["name"], one["cat"], one["ts"], one["ts"] + one["dur"],
            one.get("args", {}),
        )
        for one in document["traceEvents"]
        if one["ph"] == "X" and one["pid"] == cta
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda event: (event.begin, event.end)))


def products(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events that occupy the tensor core."""
    return tuple(event for event in events if event.track.unit == TENSOR_CORE)


def labels(events: Iterable[Event]) -> dict[str, str]:
    """The labels of products, by the place of A: the weights are never in shared memory.

    Where all products have A in the same place they are not distinguished.
    """
    places = {str(event.args.get("a", "")) for event in products(events)}
    if len(places) < 2 or "shared memory" not in places:
        return dict.fromkeys(places, ONLY)
    return {place: FIRST if place == "shared memory" else SECOND for place in places}


def chains(events: Iterable[Event]) -> tuple[Chain, ...]:
    """The products of every warp, those in a row on one accumulator together."""
    events = products(events)
    names = labels(events)
    latest: dict[int, Chain] = {}
    found: list[Chain] = []
    for event in events:
        issuer = int(event.args.get("issuer", 0))
        label = names[str(event.args.get("a", ""))]
        place = (issuer, int(event.args.get("d", -1)))
        known = latest.get(issuer)
        if known is not None and (known.label, known.place) == (label, place):
            latest[issuer] = Chain(label, place, known.begin, event.end)
            continue
        if known is not None:
            found.append(known)
        latest[issuer] = Chain(label, place, event.begin, event.end)
    return tuple(sorted((*found, *latest.values()), key=lambda chain: chain.end))


def steady_window(events: Iterable[Event], blocks: int | None = None) -> tuple[float, float, int]:
    """Begin and end of the window, and how many blocks of keys pass in it.

    ``blocks`` counts those of the whole trace; without it every accumulator of the first products
    is taken to be filled once a block. Raises ValueError for a trace without products.
    """
    found = chains(events)
    if not found:
        raise ValueError("the trace has no matrix products on the tensor core")
    first = [chain for chain in found if chain.label in (FIRST, ONLY)] or list(found)
    together = len({chain.place for chain in first})
    if blocks is None:
        blocks = max(len(first) // together, 1)
    else:
        together = max(len(first) // blocks, 1)
    if blocks < 4 or len(first) < 4 * together:
        return min(chain.begin for chain in found), found[-1].end, blocks
    ends = [chain.end for chain in first]
    skipped = max(blocks // 4, 2)
    return ends[skipped * together - 1], ends[(blocks - 1) * together - 1], blocks - 1 - skipped


def measure(events: Iterable[Event], blocks: int | None = None) -> Figures:
    """The figures of a trace's steady state. Raises ValueError for one without products."""
    events = tuple(events)
    begin, end, inside = steady_window(events, blocks)
    limits, moved = _limits(events, begin, end)
    per_block = {name: amount / inside for name, amount in limits.items()}
    busy = _merged(products(events), begin, end)
    return Figures(
        begin,
        end,
        inside,
        (end - begin) / inside,
        sum(stop - start for start, stop in busy) / (end - begin),
        per_block,
        max(per_block, key=lambda name: per_block[name]),
        moved / inside,
        _gaps(events, begin, end),
        tuple(_roles(events, begin, end)),
    )


def _merged(events: Iterable[Event], begin: float, end: float) -> list[tuple[float, float]]:
    """The times within a window in which one of the events is running."""
    merged: list[tuple[float, float]] = []
    for event in events:
        start, stop = max(event.begin, begin), min(event.end, end)
        if stop <= start:
            continue
        if merged and start <= merged[-1][1] + _SHORT:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return merged


def _limits(events: Iterable[Event], begin: float, end: float) -> tuple[dict[str, float], float]:
    """Cycles that every resource is in use, and the bytes of shared memory that are moved."""
    units: dict[str, float] = defaultdict(float)
    pipes: dict[tuple[str, int], float] = defaultdict(float)
    operands = others = 0.0
    for event in events:
        inside = event.overlap(begin, end)
        if not inside:
            continue
        share = inside / (event.end - event.begin)
        if event.track.unit:
            units[event.track.unit] += inside
            moved = share * float(event.args.get("shared", 0.0))
            if event.track.unit == TENSOR_CORE:
                operands += moved / SHARED_BYTES
            else:
                others += moved / SHARED_BYTES
            continue
        assert event.track.warp is not None
        for name in PIPES:
            amount = share * float(event.args.get(name, 0.0))
            if name == "shared":
                others += amount
            else:
                pipes[name, event.track.warp % _QUARTERS] += amount
    result = {TENSOR_CORE: units.pop(TENSOR_CORE, 0.0)}
    for name in PIPES:
        if name != "shared":
            result[name] = max(pipes[name, quarter] for quarter in range(_QUARTERS))
    result |= {"operands in shared memory": operands, "other shared memory": others, **units}
    return result, (operands + others) * SHARED_BYTES


def _gaps(events: tuple[Event, ...], begin: float, end: float) -> Gaps:
    busy = products(events)
    names = labels(busy)
    after = {event.begin: event for event in reversed(busy)}
    before: dict[str, float] = defaultdict(float)
    causes: dict[str, float] = defaultdict(float)
    lengths = []
    waits = [event for event in events if event.kind == "wait"]
    for (_, start), (stop, _) in pairwise([(begin, begin), *_merged(busy, begin, end)]):
        if stop <= start:
            continue
        lengths.append(stop - start)
        event = after[stop]
        before[names[str(event.args.get("a", ""))]] += stop - start
        left = stop - start
        for wait in waits:
            inside = wait.overlap(start, stop)
            if inside and wait.track.warp == event.args.get("issuer"):
                causes[wait.name.removeprefix("wait for ")] += inside
                left -= inside
        causes["its own work"] += max(left, 0.0)
    return Gaps(
        len(lengths), sum(lengths), max(lengths, default=0.0), dict(before), _descending(causes)
    )


def _descending(amounts: Mapping[str, float]) -> dict[str, float]:
    return {name: amounts[name] for name in sorted(amounts, key=lambda one: -amounts[one])}


def row_of(track: Track) -> tuple[str, int] | None:
    """The row that a warp's track belongs to: its role, and the first warp of its warpgroup."""
    if track.warp is None:
        return None
    return track.role or f"warps of group {track.warp // 4}", track.warp // 4 * 4


def _roles(events: Iterable[Event], begin: float, end: float) -> Iterator[Role]:
    """The roles that do anything within the window."""
    rows: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    waits: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    warps: dict[tuple[str, int], set[int]] = defaultdict(set)
    for event in events:
        row, inside = row_of(event.track), event.overlap(begin, end)
        if row is None or not inside:
            continue
        rows[row][event.kind] += inside
        warps[row].add(event.track.warp or 0)
        if event.kind == "wait":
            waits[row][event.name.removeprefix("wait for ")] += inside
    for row in sorted(rows, key=lambda one: min(warps[one])):
        if set(rows[row]) == {"wait"}:
            continue
        time = (end - begin) * len(warps[row])
        kinds = {kind: amount / time for kind, amount in sorted(rows[row].items())}
        longest = max(waits[row], key=lambda name: waits[row][name], default="")
        yield Role(row[0], len(warps[row]), kinds.get("wait", 0.0), kinds, longest)
