"""What the lanes of a warp do together (PTX ISA: shfl, vote, match, redux, elect, activemask).

A call may cover several whole warps; work is done on (warps, 32) arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.emit import Emitter, Writer
from fa4gen.emulator.gang import WARP_LANES, Gang, Mask, as_row
from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.ptx.syntax import Instruction, Operand, Pair

_LANE: Final = np.arange(WARP_LANES)
_BITS: Final = np.uint32(1) << np.arange(WARP_LANES, dtype=np.uint32)


def by_warps(row: Any, gang: Gang) -> NDArray[Any]:
    """A row as (warps, 32); the lanes that a short last warp lacks are zero."""
    row = as_row(row, gang.lanes)
    missing = -gang.lanes % WARP_LANES
    if missing:
        row = np.concatenate([row, np.zeros(missing, row.dtype)])
    return np.asarray(row.reshape(-1, WARP_LANES))


def by_lanes(warps: NDArray[Any], gang: Gang) -> NDArray[Any]:
    """Back to a row; a column (warps, 1) is spread over the lanes."""
    if warps.shape[1] == 1:
        warps = np.repeat(warps, WARP_LANES, axis=1)
    return np.asarray(warps.reshape(-1)[: gang.lanes])


def active(mask: Mask, gang: Gang) -> NDArray[np.bool_]:
    """Which lanes take part, (warps, 32)."""
    return by_warps(gang.live if mask is None else mask, gang)


def _destinations(operand: Operand, kind: str, e: Emitter) -> tuple[Writer, Writer | None]:
    """Writers of ``d`` or ``d|p``."""
    if isinstance(operand, Pair):
        return e.writer(operand.first, kind), e.writer(operand.second, "pred")
    return e.writer(operand, kind), None


def _members(i: Instruction, gang: Gang, mask: Mask, members: Any) -> None:
    """A lane has to name itself in its membermask."""
    named = by_warps(members, gang).astype(np.uint32) & _BITS
    if (active(mask, gang) & (named == 0)).any():
        gang.machine.find("illegal-instruction", f"{i.text}: a lane executes it that its "
                          "membermask does not name", i, gang, mask)


def _shfl(i: Instruction, e: Emitter) -> None:
    if i.modifiers[0] != "sync" or i.modifiers[2:] != ("b32",):
        raise e.refuse("shfl.sync.{idx,up,down,bfly}.b32 was expected")
    mode = i.modifiers[1]
    if mode not in ("idx", "up", "down", "bfly") or len(i.operands) != 5:
        raise e.refuse(f".{mode}")
    write, write_valid = _destinations(i.operands[0], "b32", e)
    value, lane, control, members = (e.reader(operand, "u32") for operand in i.operands[1:])

    def handler(gang: Gang, mask: Mask) -> None:
        _members(i, gang, mask, members(gang))
        source = by_warps(value(gang), gang)
        b = by_warps(lane(gang), gang).astype(np.int64) & 31
        c = by_warps(control(gang), gang).astype(np.int64)
        clamp, segment = c & 31, c >> 8 & 31
        low = _LANE & segment
        high = low | (clamp & ~segment)
        if mode == "up":
            target = _LANE - b
            valid = target >= high
        else:
            if mode == "down":
                target = _LANE + b
            elif mode == "bfly":
                target = _LANE ^ b
            else:
                target = low | (b & ~segment)
            valid = target <= high
        chosen = np.where(valid, target, _LANE) & 31
        present = active(mask, gang)
        away = valid & present & ~np.take_along_axis(present, chosen, axis=1)
        if away.any():
            gang.machine.find("illegal-instruction", "shfl.sync reads a lane that does not take "
                              "part", i, gang, mask)
        write(gang, by_lanes(np.take_along_axis(source, chosen, axis=1), gang), mask)
        if write_valid is not None:
            write_valid(gang, by_lanes(valid, gang), mask)

    e.call(handler)


def _vote(i: Instruction, e: Emitter) -> None:
    words = i.modifiers
    if words[0] != "sync" or words[1:] not in (
        ("all", "pred"), ("any", "pred"), ("uni", "pred"), ("ballot", "b32")
    ):
        raise e.refuse("vote.sync.{all,any,uni}.pred or .ballot.b32 was expected")
    mode = words[1]
    write = e.writer(i.operands[0], "b32" if mode == "ballot" else "pred")
    predicate, members = e.reader(i.operands[1], "pred"), e.reader(i.operands[2], "u32")

    def handler(gang: Gang, mask: Mask) -> None:
        _members(i, gang, mask, members(gang))
        votes, present = by_warps(predicate(gang), gang), active(mask, gang)
        every = (votes | ~present).all(axis=1, keepdims=True)
        some = (votes & present).any(axis=1, keepdims=True)
        if mode == "ballot":
            result: NDArray[Any] = _collect(votes & present)
        else:
            result = {"all": every, "any": some, "uni": every | ~some}[mode]
        write(gang, by_lanes(result, gang), mask)

    e.call(handler)


def _collect(flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """One word per warp of a flag per lane."""
    return np.bitwise_or.reduce(np.where(flags, _BITS, np.uint32(0)), axis=1, keepdims=True)


def _match(i: Instruction, e: Emitter) -> None:
    if len(i.modifiers) != 3 or i.modifiers[1] != "sync" or i.modifiers[2] not in ("b32", "b64"):
        raise e.refuse("match.{any,all}.sync.b32 or .b64 was expected")
    mode, kind = i.modifiers[0], i.modifiers[2]
    write, write_same = _destinations(i.operands[0], "b32", e)
    value, members = e.reader(i.operands[1], kind), e.reader(i.operands[2], "u32")

    def handler(gang: Gang, mask: Mask) -> None:
        _members(i, gang, mask, members(gang))
        values, present = by_warps(value(gang), gang), active(mask, gang)
        same = (values[:, :, None] == values[:, None, :]) & present[:, None, :]
        groups = np.bitwise_or.reduce(np.where(same, _BITS, np.uint32(0)), axis=2)
        if mode == "all":
            everyone = _collect(present)
            agreed = groups == everyone
            groups = np.where(agreed, everyone, np.uint32(0))
            if write_same is not None:
                write_same(gang, by_lanes(agreed, gang), mask)
        write(gang, by_lanes(groups, gang), mask)

    e.call(handler)


_REDUCE: Final[Mapping[str, Callable[..., Any]]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _redux(i: Instruction, e: Emitter) -> None:
    words = list(i.modifiers)
    if words[0] != "sync" or words[1] not in _REDUCE:
        raise e.refuse("redux.sync of an operation was expected")
    operation, kind, flags = words[1], words[-1], words[2:-1]
    bitwise = operation in ("and", "or", "xor")
    if kind == "f32":
        if operation not in ("min", "max") or set(flags) - {"abs", "NaN"}:
            raise e.refuse(f".{operation}.f32")
    elif flags or kind not in (("b32",) if bitwise else ("u32", "s32")):
        raise e.refuse(f".{kind}")
    write = e.writer(i.operands[0], kind)
    value, members = e.reader(i.operands[1], kind), e.reader(i.operands[2], "u32")
    function = _REDUCE[operation]
    if kind == "f32" and "NaN" not in flags:
        function = np.fmin if operation == "min" else np.fmax

    def handler(gang: Gang, mask: Mask) -> None:
        _members(i, gang, mask, members(gang))
        values, present = by_warps(value(gang), gang), active(mask, gang)
        if "abs" in flags:
            values = np.abs(values)
        result = np.zeros((len(values), 1), values.dtype)
        for warp, (row, here) in enumerate(zip(values, present, strict=True)):
            if here.any():
                result[warp, 0] = function.reduce(row[here], dtype=values.dtype)
        write(gang, by_lanes(result, gang), mask)

    e.call(handler)


def _elect(i: Instruction, e: Emitter) -> None:
    if i.modifiers != ("sync",) or not isinstance(i.operands[0], Pair):
        raise e.refuse("elect.sync d|p, membermask was expected")
    write, write_leads = _destinations(i.operands[0], "b32", e)
    members = e.reader(i.operands[1], "u32")
    assert write_leads is not None

    def handler(gang: Gang, mask: Mask) -> None:
        _members(i, gang, mask, members(gang))
        named = by_warps(members(gang), gang).astype(np.int64)
        lowest = np.log2(np.maximum(named & -named, 1)).astype(np.int64)
        write(gang, by_lanes(lowest.astype(np.uint32), gang), mask)
        write_leads(gang, by_lanes(lowest == _LANE, gang), mask)

    e.call(handler)


def _activemask(i: Instruction, e: Emitter) -> None:
    if i.modifiers != ("b32",):
        raise e.refuse("activemask.b32 was expected")
    write = e.writer(i.operands[0], "b32")

    def handler(gang: Gang, mask: Mask) -> None:
        write(gang, by_lanes(_collect(active(mask, gang)), gang), mask)

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "shfl": _shfl,
    "vote": _vote,
    "match": _match,
    "redux": _redux,
    "elect": _elect,
    "activemask": _activemask,
}
