"""``tcgen05.commit``: arrives on an mbarrier when a thread's earlier operations are complete."""

from __future__ import annotations

from typing import Final

import numpy as np

from fa4gen.emulator.instructions.copy.endpoints import only, pick
from fa4gen.emulator.instructions.tcgen05.common import (
    check_one_thread,
    check_words,
    cta_group,
    use_group,
)
from fa4gen.emulator.instructions.tcgen05.queue import queue_of
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, Mbarrier, Warpgroup
from fa4gen.emulator.state.memory import SHARED_WINDOW, WINDOW_BYTES
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter

_MULTICAST = "multicast::cluster"

_TRACKED: Final = Attached[Warpgroup, dict[int, dict[int, AsyncOp]]](lambda wg: {})
"""By lane, then by slot of the observer's clocks."""


def remember(wg: Warpgroup, lane: int, op: AsyncOp) -> None:
    """Note an operation for the thread's later commits.

    The latest in each slot is kept: to know of that one is to know of those before it.
    """
    if op.slot >= 0:
        slots = _TRACKED.of(wg).setdefault(lane, {})
        slots.pop(op.slot, None)
        slots[op.slot] = op


def tracked_by(wg: Warpgroup, lane: int) -> tuple[AsyncOp, ...]:
    """The operations that a commit of the thread would track, oldest first."""
    return tuple(_TRACKED.of(wg).get(lane, {}).values())


def commit(i: Instruction, e: Emitter) -> None:
    """The plain form and the multicast one, shared or generic address.

    With nothing under way the barrier is signalled at once [?]. Of a generic address ptxas takes
    the low 32 bits, and compilers count on it: an address of shared memory in 64 bits does, too.
    """
    check_words(
        i, e,
        {"commit", "cta_group::1", "cta_group::2", "mbarrier::arrive::one", "shared::cluster",
         _MULTICAST, "b64"},
    )  # fmt: skip
    group = cta_group(i, e)
    multicast = _MULTICAST in i.modifiers
    shared = "shared::cluster" in i.modifiers
    if "mbarrier::arrive::one" not in i.modifiers or "b64" not in i.modifiers:
        raise e.refuse("mbarrier::arrive::one.b64 was expected")
    if len(i.operands) != 1 + multicast:
        raise e.refuse("an mbarrier, and a mask with multicast, were expected")
    address = e.address(i.operands[0], shared=shared)
    to = e.reader(i.operands[1], "u16") if multicast else None

    def targets(wg: Warpgroup, lane: int, at: int, ctas: int | None) -> tuple[Mbarrier, ...]:
        machine = wg.machine
        mask = only(wg, lane)
        if not shared:
            if at >= WINDOW_BYTES and not 0 <= at - SHARED_WINDOW < WINDOW_BYTES:
                machine.fault(
                    "out-of-bounds",
                    f"generic address {at:#x} of an mbarrier is not in shared memory",
                    i, wg, mask,
                )  # fmt: skip
            at %= WINDOW_BYTES
        cta, offset = machine.shared_at(wg, at, i, True)
        if ctas is None:
            return (machine.barrier(cta, offset, wg, mask, i),)
        everyone = wg.cta.cluster.ctas
        if ctas == 0 or ctas >> len(everyone):
            machine.fault(
                "illegal-instruction",
                f"multicast mask {ctas:#x} for a cluster of {len(everyone)}",
                i, wg, mask,
            )  # fmt: skip
        return tuple(
            machine.barrier(one, offset, wg, mask, i) for one in everyone if ctas >> one.rank & 1
        )

    def issue(wg: Warpgroup, lane: int, at: int, ctas: int | None) -> None:
        machine = wg.machine
        barriers = targets(wg, lane, at, ctas)
        queue = queue_of(wg, lane)
        idle = not len(queue)

        def finish() -> None:
            for barrier in barriers:
                barrier.signal_arrival(op)

        op = AsyncOp("tcgen05.commit", wg, lane, i, lambda: None, finish, unit="tensor")
        op.notes["tracks"] = tracked_by(wg, lane)
        queue.submit(op, None)
        if idle:
            machine.complete(op)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        check_one_thread(wg, mask, i)
        use_group(wg, mask, i, group)
        at = address(wg)
        masks = to(wg) if to is not None else None
        for lane in wg.lanes_of(mask).tolist():
            ctas = None if masks is None else int(np.broadcast_to(masks, wg.lanes)[lane])
            issue(wg, lane, pick(at, lane), ctas)

    e.call(handler)
