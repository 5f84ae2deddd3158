"""Stealing clusters that have not started (PTX ISA, "clusterlaunchcontrol").

The PTX ISA calls the response of ``try_cancel`` opaque and leaves it to ``query_cancel`` to read
it. The code of ptxas for that instruction on sm_100 shows the layout, and kernels decode it by
hand: x of the first CTA in word 0, y and z in the lower and upper half of word 1, and in bit 0 of
word 2 whether a cluster was cancelled. Words 2 and 3 hold nothing else here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.async_stores import shared_address
from fa4gen.emulator.instructions.copy.endpoints import find_targets, only, pick
from fa4gen.emulator.ptx.syntax import Instruction, Sink, Vector
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.async_ops import CANCELLED
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, SharedRange, Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

_RESPONSE_BYTES: Final = 16
_COMPLETES: Final = "mbarrier::complete_tx::bytes"
# indices that no CTA has: those in a response that cancels nothing are undefined, and a kernel
# that uses them is to go wrong
_NO_CTA: Final = (0xDEAD_CAFE, 0xFFFF_FFFF)
_FAILED: Final = Attached[Warpgroup, NDArray[np.bool_]](lambda wg: np.zeros(wg.lanes, np.bool_))
"""The lanes that have seen a failure."""


def response(first: tuple[int, int, int] | None) -> NDArray[np.uint32]:
    """The four words for the cancelled cluster with this first CTA; None: nothing was cancelled."""
    if first is None:
        return np.array((*_NO_CTA, 0, 0), np.uint32)
    x, y, z = first
    return np.array((x, y | z << 16, 1, 0), np.uint32)


def _cancelled(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether a cluster was cancelled, for each response (lanes, 4)."""
    return (words[:, 2] & 1).astype(np.bool_)


def _index(words: NDArray[np.uint32], axis: int) -> NDArray[np.uint32]:
    """One index of the first CTA of each response (lanes, 4)."""
    if axis == 0:
        return words[:, 0]
    return words[:, 1] & np.uint32(0xFFFF) if axis == 1 else words[:, 1] >> np.uint32(16)


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

    def issue(wg: Warpgroup, lane: int, address: int, signal: int) -> None:
        machine = wg.machine
        ctas = wg.cta.cluster.ctas
        if _FAILED.of(wg)[lane]:
            machine.find(
                "illegal-instruction",
                "a thread that has seen try_cancel fail may not try again",
                i,
                wg,
                only(wg, lane),
            )
        targets = find_targets(
            wg,
            lane,
            i,
            address=shared_address(wg, lane, i, address, generic),
            barrier=shared_address(wg, lane, i, signal, generic),
            size=_RESPONSE_BYTES,
            align=_RESPONSE_BYTES,
            cluster=False,
            multicast=(1 << len(ctas)) - 1 if everywhere else None,
        )

        def run() -> None:
            first = machine.cancel_cluster()
            op.notes[CANCELLED] = first
            words = response(first).view(np.uint8)
            for target in targets:
                at = target.offset
                target.cta.shared.data[at : at + _RESPONSE_BYTES] = words

        def finish() -> None:
            for target in targets:
                target.barrier.signal_transaction(op, _RESPONSE_BYTES)

        op = AsyncOp(
            "clusterlaunchcontrol.try_cancel", wg, lane, i, run, finish,
            writes=tuple(
                SharedRange(one.cta, one.offset, one.offset + _RESPONSE_BYTES) for one in targets
            ),
        )  # fmt: skip
        machine.submit(op)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        if wg.machine.sm < 100:
            wg.machine.fault(
                "illegal-instruction", "clusterlaunchcontrol needs sm_100", i, wg, mask
            )
        goals, signals = goal(wg), barrier(wg)
        for lane in wg.lanes_of(mask).tolist():
            issue(wg, lane, pick(goals, lane), pick(signals, lane))

    e.call(handler)


def _query_cancel(i: Instruction, e: Emitter) -> None:
    """Read a response that has been loaded into a register."""
    words = i.modifiers[1:]
    if len(i.operands) != 2:
        raise e.refuse("two operands were expected")
    register = e.reader(i.operands[1], "b128")
    destination = i.operands[0]

    def parts(wg: Warpgroup) -> NDArray[np.uint32]:
        """The response of every lane: (lanes, 4)."""
        return np.ascontiguousarray(register(wg)).view(np.uint32).reshape(-1, 4)

    if words == ("is_canceled", "pred", "b128"):
        write = e.writer(destination, "pred")

        def ask(wg: Warpgroup, mask: Mask) -> None:
            cancelled = _cancelled(parts(wg))
            write(wg, cancelled, mask)
            failures = _FAILED.of(wg)
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

    def handler(wg: Warpgroup, mask: Mask) -> None:
        values = parts(wg)
        valid = _cancelled(values)
        if not (valid if mask is None else valid[mask]).all():
            wg.machine.remark(
                "cancelled-cluster",
                "the first CTA of a response that says that nothing was cancelled: undefined, "
                "here no CTA of the grid",
                i, wg, mask, Severity.ISA,
            )  # fmt: skip
        for number, write in enumerate(items):
            axis = first + number
            write(wg, _index(values, axis) if axis < 3 else np.uint32(0), mask)

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "clusterlaunchcontrol.try_cancel": _try_cancel,
    "clusterlaunchcontrol.query_cancel": _query_cancel,
}
