"""Work left undone: outputs that stay unwritten, cancelled clusters that no CTA takes up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.global_memory.races import stretches
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.async_ops import CANCELLED
from fa4gen.emulator.state.machine import SharedRange

if TYPE_CHECKING:
    from fa4gen.emulator.state.global_arrays import Output
    from fa4gen.emulator.state.machine import AsyncOp, Cta, Machine

_TRY_CANCEL: Final = "clusterlaunchcontrol.try_cancel"
_NAMED: Final = 4  # clusters in a message


class _Written:
    """The bytes of an output that have been written, from ``start`` on."""

    def __init__(self, output: Output) -> None:
        self.output = output
        array = output.array
        low, high = np.lib.array_utils.byte_bounds(array)
        self._first: int = array.__array_interface__["data"][0] - low
        self.start = output.address - self._first
        self._bytes = np.zeros(high - low, np.bool_)

    def mark(self, starts: NDArray[np.int64], size: int) -> None:
        """``size`` bytes from each address on are written."""
        at = starts - self.start
        at = at[(at > -size) & (at < len(self._bytes))]
        if not len(at):
            return
        if size > 64:
            for begin in at.tolist():
                self._bytes[max(begin, 0) : begin + size] = True
            return
        cells = (at[:, None] + np.arange(size)).reshape(-1)
        self._bytes[cells[(cells >= 0) & (cells < len(self._bytes))]] = True

    def missing(self) -> NDArray[np.bool_]:
        """The elements of which a byte was never written, in the array's shape."""
        array = self.output.array
        element = np.ndarray(
            (*array.shape, array.itemsize),
            np.bool_,
            buffer=self._bytes.data,
            offset=self._first,
            strides=(*array.strides, 1),
        )
        return np.asarray(~element.all(axis=-1))


class WorkChecks:
    """Watches outputs, and the responses of try_cancel until somebody reads them."""

    def __init__(self, machine: Machine, outputs: Sequence[Output]) -> None:
        self._machine = machine
        self._written = [_Written(one) for one in outputs if one.array.size]
        # the unread response at each place, by CTA and offset
        self._places: dict[Cta, dict[int, AsyncOp]] = {}
        self._unread: dict[int, AsyncOp] = {}
        self._notes: list[dict[str, Any]] = []

    @property
    def waiting(self) -> bool:
        """Whether a response has not been read."""
        return bool(self._unread)

    # ---- events

    def read(self, cta: Cta, low: int, high: int) -> None:
        """Somebody reads shared memory from ``low`` to ``high``."""
        places = self._places.get(cta)
        if not places:
            return
        for start, op in list(places.items()):
            if op.done and start < high and low < start + 16:
                self._unread.pop(id(op), None)
                for goal in op.writes:
                    assert isinstance(goal, SharedRange)
                    there = self._places[goal.cta]
                    if there.get(goal.start) is op:
                        del there[goal.start]

    def write(self, addresses: NDArray[Any], size: int) -> None:
        """Threads write ``size`` bytes of global memory at each address."""
        for one in self._written:
            one.mark(addresses.astype(np.int64), size)

    def issued(self, op: AsyncOp) -> None:
        """An operation will read and write."""
        if self._unread:
            for part in op.reads:
                if isinstance(part, SharedRange):
                    self.read(part.cta, part.start, part.stop)
        if self._written:
            for starts, size in stretches(op, op.writes):
                self.write(starts, size)
        if op.kind == _TRY_CANCEL:
            self._notes.append(op.notes)
            self._unread[id(op)] = op
            for goal in op.writes:
                assert isinstance(goal, SharedRange)
                self._places.setdefault(goal.cta, {})[goal.start] = op

    # ---- the end

    def ends(self) -> None:
        """All threads have left: report outputs not written and work not finished."""
        machine = self._machine
        lost = [op for op in self._unread.values() if op.notes.get(CANCELLED) is not None]
        for op in lost:
            mask = np.zeros(op.wg.lanes, np.bool_)
            mask[op.lane] = True
            machine.find(
                "cancelled-cluster",
                f"the cluster of {_clusters([op.notes])} was cancelled and nobody has read the "
                "response: its work is lost",
                op.site,
                op.wg,
                mask,
            )
        for one in self._written:
            missing = one.missing()
            count = int(np.count_nonzero(missing))
            if not count:
                continue
            first = tuple(int(part[0]) for part in np.nonzero(missing))
            text = (
                f"{count} of {missing.size} elements of {one.output.name} were never written, "
                f"the first at index {first[0] if len(first) == 1 else first}"
            )
            taken = [notes for notes in self._notes if notes.get(CANCELLED) is not None]
            if lost:
                text += f"; the work of {_clusters([op.notes for op in lost])} is lost"
            elif taken:
                text += f"; cancelled were the clusters of {_clusters(taken)}"
            machine.log.add(
                "unwritten-output", Severity.REVIEW, text, None, "all threads",
                apart=one.output.name,
            )  # fmt: skip


def _clusters(notes: Sequence[dict[str, Any]]) -> str:
    names = [f"CTA {one[CANCELLED]}" for one in notes]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
