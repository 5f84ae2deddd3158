"""Clusters: addresses of other CTAs, and stealing clusters that have not started.

PTX ISA: "mapa", "getctarank", "clusterlaunchcontrol", "griddepcontrol".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fa4gen.emulator.async_ops import AsyncOp, SharedRange
from fa4gen.emulator.emit import Emitter, Reader
from fa4gen.emulator.gang import Gang, Mask
from fa4gen.emulator.instructions.async_stores import shared_address
from fa4gen.emulator.instructions.copy_places import find_targets, only, pick
from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.memory import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW, WINDOW_BYTES
from fa4gen.emulator.ptx.syntax import Instruction, Sink, Vector

_RESPONSE_BYTES: Final = 16
_COMPLETES: Final = "mbarrier::complete_tx::bytes"
# in the response: a mark, then x, y, z of the first CTA; all zero when nothing was cancelled
_MARK: Final = 1
_FAILED: Final = "clusterlaunchcontrol"  # state of a gang: which lanes have seen a failure


def _width(i: Instruction, e: Emitter) -> tuple[bool, str]:
    """Whether addresses are generic, and their type."""
    words = i.modifiers
    if words in (("u32",), ("u64",)):
        return True, words[0]
    if words in (("shared::cluster", "u32"), ("shared::cluster", "u64")):
        return False, words[1]
    raise e.refuse("modifiers")


def _shared_row(
    gang: Gang, mask: Mask, site: Instruction, addresses: Any, generic: bool
) -> np.ndarray[Any, Any]:
    """Shared addresses (uint64, a row or a scalar) from addresses that may be generic."""
    row = np.asarray(addresses, np.uint64)
    if not generic:
        return row & np.uint64(WINDOW_BYTES - 1)
    taken = row if mask is None or not row.ndim else row[mask]
    low, high = int(taken.min()), int(taken.max())
    if low < SHARED_WINDOW or high >= SHARED_WINDOW + WINDOW_BYTES:
        bad = low if low < SHARED_WINDOW else high
        gang.machine.fault(
            "out-of-bounds", f"generic address {bad:#x} is not in shared memory", site, gang, mask
        )
    return row - np.uint64(SHARED_WINDOW)


def _map_address(i: Instruction, e: Emitter) -> None:
    """``mapa``: the same place in the CTA of another rank."""
    generic, kind = _width(i, e)
    if len(i.operands) != 3:
        raise e.refuse("three operands were expected")
    if generic and kind == "u32":
        raise e.refuse("generic addresses have 64 bits")
    write = e.writer(i.operands[0], kind)
    source, rank = e.reader(i.operands[1], kind), e.reader(i.operands[2], "u32")
    window = np.uint64(SHARED_WINDOW if generic else 0)

    def handler(gang: Gang, mask: Mask) -> None:
        offsets = _shared_row(gang, mask, i, source(gang), generic) & np.uint64(OFFSET_MASK)
        ranks = np.asarray(rank(gang), np.uint64)
        taken = ranks if mask is None or not ranks.ndim else ranks[mask]
        if int(taken.max()) >= len(gang.cta.cluster.ctas):
            gang.machine.fault(
                "out-of-bounds",
                f"rank {int(taken.max())} of a cluster of {len(gang.cta.cluster.ctas)}",
                i,
                gang,
                mask,
            )
        result = offsets + (ranks << np.uint64(RANK_SHIFT)) + window
        write(gang, result.astype(np.uint32 if kind == "u32" else np.uint64), mask)

    e.call(handler)


def _rank(i: Instruction, e: Emitter) -> None:
    """``getctarank``: the CTA whose shared memory an address is in."""
    generic, kind = _width(i, e)
    if len(i.operands) != 2 or (generic and kind == "u32"):
        raise e.refuse("operands")
    write, source = e.writer(i.operands[0], "u32"), e.reader(i.operands[1], kind)

    def handler(gang: Gang, mask: Mask) -> None:
        row = _shared_row(gang, mask, i, source(gang), generic)
        write(gang, (row >> np.uint64(RANK_SHIFT)).astype(np.uint32), mask)

    e.call(handler)


def _try_cancel(i: Instruction, e: Emitter) -> None:
    """Take a cluster that has not started off the grid; the response comes asynchronously.

    The response is 16 bytes in every CTA that receives it, with the first CTA's indices.
    """
    words = list(i.modifiers[1:])
    if words[0] != "async" or words[-1] != "b128":
        raise e.refuse("modifiers")
    middle = set(words[1:-1])
    everywhere = "multicast::cluster::all" in middle
    if middle - {"shared::cta", _COMPLETES, "multicast::cluster::all"} or _COMPLETES not in middle:
        raise e.refuse("modifiers")
    if len(i.operands) != 2:
        raise e.refuse("two operands were expected")
    generic = "shared::cta" not in middle
    goal: Reader = e.address(i.operands[0], shared=not generic)
    barrier: Reader = e.address(i.operands[1], shared=not generic)

    def issue(gang: Gang, lane: int, address: int, signal: int) -> None:
        machine = gang.machine
        ctas = gang.cta.cluster.ctas
        failures = gang.state.get(_FAILED)
        if failures is not None and failures[lane]:
            machine.find(
                "illegal-instruction",
                "a thread that has seen try_cancel fail may not try again",
                i,
                gang,
                only(gang, lane),
            )
        targets = find_targets(
            gang,
            lane,
            i,
            address=shared_address(gang, lane, i, address, generic),
            barrier=shared_address(gang, lane, i, signal, generic),
            size=_RESPONSE_BYTES,
            align=_RESPONSE_BYTES,
            cluster=False,
            multicast=(1 << len(ctas)) - 1 if everywhere else None,
        )

        def run() -> None:
            first = machine.cancel_cluster()
            words = np.array((_MARK, *first) if first is not None else (0, 0, 0, 0), np.uint32)
            for target in targets:
                at = target.offset
                target.cta.shared.data[at : at + _RESPONSE_BYTES] = words.view(np.uint8)

        def finish() -> None:
            for target in targets:
                target.barrier.signal_transaction(op, _RESPONSE_BYTES)

        op = AsyncOp(
            "clusterlaunchcontrol.try_cancel", gang, lane, i, run, finish,
            writes=tuple(
                SharedRange(one.cta, one.offset, one.offset + _RESPONSE_BYTES) for one in targets
            ),
        )  # fmt: skip
        machine.submit(op)

    def handler(gang: Gang, mask: Mask) -> None:
        if gang.machine.sm < 100:
            gang.machine.fault(
                "illegal-instruction", "clusterlaunchcontrol needs sm_100", i, gang, mask
            )
        goals, signals = goal(gang), barrier(gang)
        for lane in gang.lanes_of(mask).tolist():
            issue(gang, lane, pick(goals, lane), pick(signals, lane))

    e.call(handler)


def _query_cancel(i: Instruction, e: Emitter) -> None:
    """Read a response that has been loaded into a register."""
    words = i.modifiers[1:]
    if len(i.operands) != 2:
        raise e.refuse("two operands were expected")
    response = e.reader(i.operands[1], "b128")
    destination = i.operands[0]

    def parts(gang: Gang) -> np.ndarray[Any, Any]:
        """Mark, x, y, z of every lane: uint32 (lanes, 4)."""
        return np.ascontiguousarray(response(gang)).view(np.uint32).reshape(-1, 4)

    if words == ("is_canceled", "pred", "b128"):
        write = e.writer(destination, "pred")

        def ask(gang: Gang, mask: Mask) -> None:
            cancelled = parts(gang)[:, 0] == _MARK
            write(gang, cancelled, mask)
            failures = gang.state.setdefault(_FAILED, np.zeros(gang.lanes, np.bool_))
            failures |= ~cancelled if mask is None else ~cancelled & mask

        e.call(ask)
        return
    if words == ("get_first_ctaid", "v4", "b32", "b128"):
        if not isinstance(destination, Vector) or len(destination.items) != 4:
            raise e.refuse("a vector of four was expected")
        items = [e.writer(item, "b32") for item in destination.items[:3]]
        if not isinstance(destination.items[3], Sink):
            items.append(e.writer(destination.items[3], "b32"))
    elif len(words) == 3 and words[1:] == ("b32", "b128") and words[0][:-1] == "get_first_ctaid::":
        if words[0][-1] not in "xyz":
            raise e.refuse("modifiers")
        items = [e.writer(destination, "b32")]
    else:
        raise e.refuse("modifiers")
    first = "xyz".index(words[0][-1]) if len(words) == 3 else 0

    def handler(gang: Gang, mask: Mask) -> None:
        values = parts(gang)
        valid = values[:, 0] == _MARK
        if not (valid if mask is None else valid[mask]).all():
            gang.machine.find(
                "illegal-instruction",
                "the first CTA of a response that says that nothing was cancelled",
                i,
                gang,
                mask,
            )
        for number, write in enumerate(items):
            column = first + number
            write(gang, values[:, 1 + column] if column < 3 else np.uint32(0), mask)

    e.call(handler)


def _dependent_grids(i: Instruction, e: Emitter) -> None:
    """``griddepcontrol``: there is only one grid, so nothing to wait for or to launch."""
    if i.modifiers not in (("wait",), ("launch_dependents",)) or i.operands:
        raise e.refuse("modifiers")


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "mapa": _map_address,
    "getctarank": _rank,
    "clusterlaunchcontrol.try_cancel": _try_cancel,
    "clusterlaunchcontrol.query_cancel": _query_cancel,
    "griddepcontrol": _dependent_grids,
}
