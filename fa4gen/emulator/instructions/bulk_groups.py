"""Bulk groups: the bulk operations of a thread, in the order of their commits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fa4gen.emulator.async_ops import AsyncOp
from fa4gen.emulator.gang import Gang, Mask
from fa4gen.emulator.instructions.copy_places import only

_KEY: Final = "bulk_groups"
_ISSUERS: Final = "issuers"


@dataclass(slots=True)
class ThreadGroups:
    """Operations not committed yet, and committed groups that nobody has waited for.

    The first ``read`` groups are known to have read their sources.
    """

    open: list[AsyncOp] = field(default_factory=list)
    groups: list[list[AsyncOp]] = field(default_factory=list)
    read: int = 0


def _threads(gang: Gang) -> dict[int, ThreadGroups]:
    threads: dict[int, ThreadGroups] = gang.state.setdefault(_KEY, {})
    return threads


def add(gang: Gang, lanes: range, op: AsyncOp) -> None:
    """An operation of a thread, or of several alike, to be part of the next group of each."""
    if len(lanes) > 1:
        op.notes[_ISSUERS] = (lanes.start, lanes.stop)
    for lane in lanes:
        _threads(gang).setdefault(lane, ThreadGroups()).open.append(op)


def commit(gang: Gang, mask: Mask) -> None:
    """``cp.async.bulk.commit_group``. Threads that never copied have nothing to keep."""
    for lane, thread in _threads(gang).items():
        if mask is None or mask[lane]:
            thread.groups.append(thread.open)
            thread.open = []


def wait(gang: Gang, mask: Mask, pending: int, reads_only: bool) -> None:
    """``cp.async.bulk.wait_group``: all but the ``pending`` latest groups are over."""
    machine = gang.machine
    kind = "read" if reads_only else "complete"
    common: dict[int, tuple[AsyncOp, list[int]]] = {}
    for lane, thread in _threads(gang).items():
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
        for op in ops:
            if _ISSUERS in op.notes:
                common.setdefault(id(op), (op, []))[1].append(lane)
        ops = [op for op in ops if _ISSUERS not in op.notes]
        if ops:
            machine.observer.observed(gang, only(gang, lane), ops, kind)
    for op, lanes in common.values():
        _wait_for_common(gang, op, lanes, kind)


def _wait_for_common(gang: Gang, op: AsyncOp, lanes: list[int], kind: str) -> None:
    """Lanes wait for an operation of several: it is over when each has waited for its share."""
    waited: set[int] = op.notes.setdefault(f"waited, {kind}", set())
    waited.update(lanes)
    start, stop = op.notes[_ISSUERS]
    if len(waited) == stop - start:
        mask = np.zeros(gang.lanes, np.bool_)
        mask[lanes] = True
        gang.machine.observer.observed(gang, mask, [op], kind)
