"""Bulk groups: the bulk operations of a thread, in the order of their commits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fa4gen.emulator.instructions.copy.endpoints import only
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, Warpgroup
from fa4gen.emulator.state.registers import Mask


@dataclass(slots=True)
class ThreadGroups:
    """Operations not committed yet, and committed groups that have not been waited for.

    The first ``read`` groups are known to have read their sources.
    """

    open: list[AsyncOp] = field(default_factory=list)
    groups: list[list[AsyncOp]] = field(default_factory=list)
    read: int = 0


_THREADS: Final = Attached[Warpgroup, dict[int, ThreadGroups]](lambda wg: {})
"""By lane."""


def add(wg: Warpgroup, lanes: range, op: AsyncOp) -> None:
    """An operation of a thread, or of several alike, to be part of the next group of each.

    The wait of any of these lanes is one for the operation: ptxas makes it one for a scoreboard of
    the warp.
    """
    if len(lanes) > 1:
        op.notes["issuers"] = (lanes.start, lanes.stop)
    for lane in lanes:
        _THREADS.of(wg).setdefault(lane, ThreadGroups()).open.append(op)


def commit(wg: Warpgroup, mask: Mask) -> None:
    """``cp.async.bulk.commit_group``. Threads that never copied have nothing to keep."""
    for lane, thread in _THREADS.of(wg).items():
        if mask is None or mask[lane]:
            thread.groups.append(thread.open)
            thread.open = []


def wait(wg: Warpgroup, mask: Mask, pending: int, reads_only: bool) -> None:
    """``cp.async.bulk.wait_group``: all but the ``pending`` latest groups are over."""
    machine = wg.machine
    kind = "read" if reads_only else "complete"
    for lane, thread in _THREADS.of(wg).items():
        if mask is not None and not mask[lane]:
            continue
        over = max(len(thread.groups) - pending, 0)
        start = thread.read if reads_only else 0
        ops = [op for group in thread.groups[start:over] for op in group]
        for op in ops:
            machine.complete(op)
        if reads_only:
            thread.read = max(thread.read, over)
        else:
            del thread.groups[:over]
            thread.read = max(thread.read - over, 0)
        if ops:
            machine.observer.observed(wg, only(wg, lane), ops, kind)
