"""Exchanges between the lanes of a warp.

PTX ISA: "shfl.sync", "vote.sync", "match.sync", "redux.sync", "activemask", "elect.sync". A call
may cover several warps, and lanes of a warp with different membermasks: 32-bit words, one per warp,
stand for sets of its lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.scalar.modifiers import Words
from fa4gen.emulator.ptx.syntax import Immediate, Instruction, Pair, Sink
from fa4gen.emulator.ptx.types import bits_of, dtype_of
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, WARPGROUP_LANES, Mask
from fa4gen.emulator.translate.emit import Emitter, Writer
from fa4gen.emulator.translate.registry import Translate

_FULL: Final = 0xFFFFFFFF
_LANE: Final = np.arange(WARPGROUP_LANES) % WARP_LANES
_BIT: Final = np.uint32(1) << _LANE.astype(np.uint32)


def per_warp(row: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """The lanes of each warp where ``row`` holds: (warps,)."""
    packed = np.packbits(row, bitorder="little")
    if len(packed) % 4:
        packed = np.pad(packed, (0, -len(packed) % 4))
    return packed.view(np.uint32)


def per_lane(words: NDArray[Any], lanes: int) -> NDArray[Any]:
    """Each lane gets its warp's value: (lanes,)."""
    return words.repeat(WARP_LANES)[:lanes]


def executing(wg: Warpgroup, mask: Mask) -> NDArray[np.bool_]:
    """The lanes that take part."""
    return np.ones(wg.lanes, np.bool_) if mask is None else mask


def _check_members(site: Instruction, wg: Warpgroup, mask: Mask, members: Any) -> None:
    """Every lane that takes part belongs to its own membermask."""
    if members.ndim == 0 and int(members) == _FULL:
        return
    absent = executing(wg, mask) & ((members & _BIT[: wg.lanes]) == 0)
    if absent.any():
        value = int(np.broadcast_to(members, wg.lanes)[absent.argmax()])
        wg.machine.find(
            "illegal-instruction",
            f"the lane is not in its membermask {value:#x}",
            site,
            wg,
            absent,
        )


# ---- shfl


def _source_lanes(mode: str, b: Any, c: Any, lane: NDArray[Any]) -> tuple[Any, Any]:
    """The lane of its warp that each lane reads, and whether that is in its segment."""
    b, c = (np.asarray(x).astype(np.int64) for x in (b, c))
    b = b & 31
    clamp, segment = c & 31, c >> 8 & 31
    low = lane & segment
    high = low | clamp & ~segment
    if mode == "up":
        source = lane - b
        good = source >= high
    else:
        if mode == "down":
            source = lane + b
        elif mode == "bfly":
            source = lane ^ b
        else:
            source = low | b & ~segment
        good = source <= high
    return np.where(good, source, lane), good


def _shuffle(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("sync")
    mode = words.kind("up", "down", "bfly", "idx")
    words.kind("b32")
    words.end(5)
    destination, a, b, c, members = i.operands
    inside: Writer | None = None
    if isinstance(destination, Pair):
        inside = e.writer(destination.second, "pred")
        destination = destination.first
    write = e.writer(destination, "b32")
    read, read_b, read_c = (e.reader(operand, "u32") for operand in (a, b, c))
    read_members = e.reader(members, "u32")
    table = None
    first = np.arange(WARPGROUP_LANES) - _LANE
    if isinstance(b, Immediate) and isinstance(c, Immediate):
        source, good = _source_lanes(mode, b.bits, c.bits, _LANE)
        table = source + first, np.broadcast_to(good, WARPGROUP_LANES)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        lanes = wg.lanes
        if table is not None:
            sources, good = table[0][:lanes], table[1][:lanes]
        else:
            sources, good = _source_lanes(mode, read_b(wg), read_c(wg), _LANE[:lanes])
            sources = sources + first[:lanes]
        member = read_members(wg)
        _check_members(i, wg, mask, member)
        if mask is not None or lanes % WARP_LANES or member.ndim or int(member) != _FULL:
            sources = _check_sources(i, wg, mask, member, sources)
        write(wg, np.broadcast_to(read(wg), lanes)[sources], mask)
        if inside is not None:
            inside(wg, good, mask)

    e.call(handler)


def _check_sources(
    site: Instruction, wg: Warpgroup, mask: Mask, members: Any, sources: NDArray[Any]
) -> NDArray[Any]:
    """Remark on lanes that read one that takes no part; sources within the warpgroup."""
    lanes = wg.lanes
    here = executing(wg, mask)
    within: NDArray[Any] = np.minimum(sources, lanes - 1)
    bit = np.uint32(1) << (sources % WARP_LANES).astype(np.uint32)
    bad = here & ((sources >= lanes) | ~here[within] | ((members & bit) == 0))
    if bad.any():
        lane = int(bad.argmax())
        wg.machine.find(
            "illegal-instruction",
            f"lane {lane % WARP_LANES} reads lane {int(sources[lane]) % WARP_LANES}, which takes no"
            " part: the value is undefined",
            site,
            wg,
            bad,
            Severity.REVIEW,
        )
    return within


# ---- vote, activemask, elect


def _vote(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("sync")
    mode = words.kind("all", "any", "uni", "ballot")
    kind = words.kind("b32" if mode == "ballot" else "pred")
    words.end(3)
    write = e.writer(i.operands[0], kind)
    read, read_members = e.reader(i.operands[1], "pred"), e.reader(i.operands[2], "u32")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        lanes = wg.lanes
        member = read_members(wg)
        _check_members(i, wg, mask, member)
        here = executing(wg, mask)
        yes = per_lane(per_warp(here & read(wg)), lanes) & member
        if mode == "ballot":
            write(wg, yes, mask)
            return
        everyone = per_lane(per_warp(here), lanes) & member
        if mode == "any":
            write(wg, yes != 0, mask)
        elif mode == "all":
            write(wg, yes == everyone, mask)
        else:
            write(wg, (yes == everyone) | (yes == 0), mask)

    e.call(handler)


def _active(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("b32")
    words.end(1)
    write = e.writer(i.operands[0], "b32")
    e.call(lambda wg, mask: write(wg, per_lane(per_warp(executing(wg, mask)), wg.lanes), mask))


def _elect(i: Instruction, e: Emitter) -> None:
    """The leader is the lowest lane of the membermask that is there."""
    words = Words(i, e)
    words.kind("sync")
    words.end(2)
    pair = i.operands[0]
    if not isinstance(pair, Pair):
        raise e.refuse("two destinations were expected")
    write = None if isinstance(pair.first, Sink) else e.writer(pair.first, "b32")
    chosen = e.writer(pair.second, "pred")
    read_members = e.reader(i.operands[1], "u32")
    first_of_warp = _LANE == 0

    def handler(wg: Warpgroup, mask: Mask) -> None:
        lanes = wg.lanes
        member = read_members(wg)
        if mask is None and member.ndim == 0 and int(member) == _FULL:
            chosen(wg, first_of_warp[:lanes], mask)
            if write is not None:
                write(wg, np.uint32(0), mask)
            return
        _check_members(i, wg, mask, member)
        there = per_lane(per_warp(executing(wg, mask)), lanes) & member
        lowest = there & (~there + np.uint32(1))
        chosen(wg, lowest == _BIT[:lanes], mask)
        if write is not None:
            write(wg, np.bitwise_count(lowest - np.uint32(1)).astype(np.uint32), mask)

    e.call(handler)


# ---- match


def _match(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    mode = words.kind("any", "all")
    words.kind("sync")
    kind = words.kind("b32", "b64")
    words.end(3)
    destination = i.operands[0]
    agreed: Writer | None = None
    if isinstance(destination, Pair):
        if mode == "any":
            raise e.refuse("a predicate goes with .all")
        agreed = e.writer(destination.second, "pred")
        destination = destination.first
    write = e.writer(destination, "b32")
    read, read_members = e.reader(i.operands[1], kind), e.reader(i.operands[2], "u32")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        lanes = wg.lanes
        member = read_members(wg)
        _check_members(i, wg, mask, member)
        row = np.zeros(wg.warps * WARP_LANES, dtype_of(kind))
        row[:lanes] = read(wg)
        table = row.reshape(-1, WARP_LANES)
        equal = table[:, :, None] == table[:, None, :]
        same = np.packbits(equal, axis=2, bitorder="little").view(np.uint32).reshape(-1)[:lanes]
        there = per_lane(per_warp(executing(wg, mask)), lanes) & member
        same = same & there
        if mode == "any":
            write(wg, same, mask)
            return
        everyone = same == there
        write(wg, np.where(everyone, there, np.uint32(0)), mask)
        if agreed is not None:
            agreed(wg, everyone, mask)

    e.call(handler)


# ---- redux

Reduce = Callable[[NDArray[Any]], Any]

_CANONICAL_NAN: Final = 0x7FFFFFFF
_INTEGERS: Final = {
    ("add", "u32"): np.add,
    ("add", "s32"): np.add,
    ("min", "u32"): np.minimum,
    ("min", "s32"): np.minimum,
    ("max", "u32"): np.maximum,
    ("max", "s32"): np.maximum,
    ("and", "b32"): np.bitwise_and,
    ("or", "b32"): np.bitwise_or,
    ("xor", "b32"): np.bitwise_xor,
}


def _float_reduce(ufunc: Any, absolute: bool, nan_wins: bool) -> Reduce:
    """Minimum or maximum of float bits along the last axis; -0 is less than +0.

    Floats are compared as integers of the same order. Without .NaN a NaN loses.
    """

    def reduce(values: NDArray[Any]) -> Any:
        bits = values.view(np.int32)
        if absolute:
            bits = bits & 0x7FFFFFFF
        nan = (bits & 0x7FFFFFFF) > 0x7F800000
        keys = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        worst = 0x7FFFFFFF if ufunc is np.minimum else -0x80000000
        best = ufunc.reduce(np.where(nan, np.int32(worst), keys), axis=-1)
        result = np.where(best < 0, best ^ 0x7FFFFFFF, best)
        wrong = nan.any(axis=-1) if nan_wins else nan.all(axis=-1)
        return np.where(wrong, np.int32(_CANONICAL_NAN), result).view(np.uint32)

    return reduce


def _redux(i: Instruction, e: Emitter) -> None:
    words = Words(i, e)
    words.kind("sync")
    operation = words.kind("add", "min", "max", "and", "or", "xor")
    absolute, nan_wins = words.has("abs"), words.has("NaN")
    kind = words.kind("u32", "s32", "b32", "f32")
    words.end(3)
    reduce: Reduce
    if kind == "f32":
        if operation not in ("min", "max"):
            raise e.refuse(f".{operation} of .f32")
        function = np.minimum if operation == "min" else np.maximum
        reduce = _float_reduce(function, absolute, nan_wins)
        dtype: Any = np.uint32
    else:
        ufunc = _INTEGERS.get((operation, kind))
        if ufunc is None or absolute or nan_wins:
            raise e.refuse(f".{operation} of .{kind}")
        dtype = dtype_of(kind)

        def reduce(values: NDArray[Any]) -> Any:
            return ufunc.reduce(values, axis=-1, dtype=dtype)

    write = e.writer(i.operands[0], f"b{bits_of(kind)}")
    read, read_members = e.reader(i.operands[1], kind), e.reader(i.operands[2], "u32")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        lanes = wg.lanes
        member = read_members(wg)
        _check_members(i, wg, mask, member)
        row = np.broadcast_to(read(wg), lanes).view(dtype)
        there = per_warp(executing(wg, mask))
        if member.ndim == 0 and int(member) == _FULL and ((there == _FULL) | (there == 0)).all():
            write(wg, per_lane(reduce(row.reshape(-1, WARP_LANES)), lanes), mask)
            return
        result = np.zeros(lanes, dtype)
        groups = per_lane(there, lanes) & member
        keys = groups.astype(np.int64) | np.arange(lanes) // WARP_LANES << WARP_LANES
        here = executing(wg, mask)
        for key in np.unique(keys[here]).tolist():
            first = key >> WARP_LANES << 5
            chosen = first + np.flatnonzero((key >> np.arange(WARP_LANES)) & 1)
            result[here & (keys == key)] = reduce(np.ascontiguousarray(row[chosen]))
        write(wg, result, mask)

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "shfl": _shuffle,
    "vote": _vote,
    "match": _match,
    "redux": _redux,
    "activemask": _active,
    "elect": _elect,
}
