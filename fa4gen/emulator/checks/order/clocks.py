"""Vector clocks of a cluster: how far each thread has observed the other threads and operations.

Threads that have synchronised alike share one row, so that a barrier among 128 threads costs a few
operations on vectors, whatever the number of threads. A row has one plane per kind of knowledge
and a column per thread, then one per slot of an asynchronous operation, then one for "nobody",
which everyone knows. A thread's own column in its row is out of date; ``own`` has its epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import AsyncOp

AVC: Final = 0
"""Known, and ordered before later accesses of the async proxy by a proxy fence."""
VC: Final = 1
"""Known: happens before."""
LOOSE: Final = 2
"""Known if the scopes of releases did not matter."""
EXEC: Final = 3
"""Executed before: any signal will do, relaxed ones too."""
BEFORE: Final = 4
"""The plane ordered by ``tcgen05.fence::before_thread_sync`` of the knowing thread (Blackwell
only)."""
AFTER: Final = 5
"""The plane BEFORE with ``after_thread_sync`` executed by this thread, too (never handed on)."""

WARP: Final = 32

Vector: TypeAlias = NDArray[np.uint32]
Threads: TypeAlias = "slice | NDArray[np.int64]"


def first_plane(op: AsyncOp) -> int:
    """The first plane in which a waiting thread knows of an operation: it knows in all later ones.

    Writes of cp.async and st.async count as generic: the async proxy knows of them after a fence.
    """
    return VC if writes_as_threads(op) else AVC


def writes_as_threads(op: AsyncOp) -> bool:
    """Whether an asynchronous operation writes through the generic proxy."""
    return bool(op.notes.get("proxy") == "generic")


class Clocks:
    """``threads`` threads and ``slots`` asynchronous slots of one cluster.

    own     (planes handed on, threads): the epochs of each thread for others to know
    """

    def __init__(self, threads: int, slots: int, tcgen05: bool) -> None:
        self.threads = threads
        self.nobody = threads + slots
        self.planes = 6 if tcgen05 else 4
        self.carried = 5 if tcgen05 else 4
        self.own = np.zeros((self.carried, threads), np.uint32)
        self.own[VC : EXEC + 1] = 1
        self.epochs: NDArray[np.uint32] = self.own[VC]
        self._class = np.zeros(threads, np.int64)
        self._rows = np.zeros((16, self.planes, self.nobody + 1), np.uint32)
        self._uses = [0] * 16
        self._uses[0] = threads
        self._free = list(range(15, 0, -1))

    def vector(self) -> Vector:
        """An empty clock for others to publish to: (planes handed on, columns)."""
        return np.zeros((self.carried, self.nobody + 1), np.uint32)

    # ---- publishing

    def publish(self, threads: Threads, target: Vector, first: int = AVC) -> None:
        """Join threads' knowledge into ``target``, planes from ``first`` on; a new epoch starts."""
        self._put(threads, target, first)
        self.advance(threads)

    def publish_twice(
        self, threads: Threads, wide: Vector, near: Vector, *, far: bool, covers: bool
    ) -> None:
        """Publish to acquires of wide scope, and to acquires of the CTA's scope.

        ``far``: the threads are another CTA's, so that the latter learn of completions alone; the
        former too unless the release ``covers`` the other CTA.
        """
        for target, whole in ((wide, covers or not far), (near, not far)):
            if whole:
                self._put(threads, target, AVC)
            else:
                self._put_narrow(threads, target)
        self.advance(threads)

    def publish_remote(self, threads: Threads, target: Vector) -> None:
        """Publish with too narrow a scope: only completions of asynchronous operations count."""
        self._put_narrow(threads, target)
        self.advance(threads)

    def narrowed(self, known: Vector, target: Vector) -> None:
        """Join a vector into ``target`` as if it had come with too narrow a scope."""
        late = target[:LOOSE, self.threads :]
        np.maximum(late, known[:LOOSE, self.threads :], out=late)
        np.maximum(target[LOOSE:], known[LOOSE : self.carried], out=target[LOOSE:])

    def _put(self, threads: Threads, target: Vector, first: int) -> None:
        self._join_rows(threads, target[first:], slice(first, self.carried), slice(None))
        mine = target[first:, threads]
        target[first:, threads] = np.maximum(mine, self.own[first:, threads])

    def _put_narrow(self, threads: Threads, target: Vector) -> None:
        columns = slice(self.threads, None)
        self._join_rows(threads, target[:LOOSE, columns], slice(0, LOOSE), columns)
        self._put(threads, target, LOOSE)

    def advance(self, threads: Threads) -> None:
        """Begin a new epoch: later accesses are not part of the last publication."""
        self.own[VC : EXEC + 1, threads] += np.uint32(1)

    def snapshot(self, thread: int) -> Vector:
        """All that one thread knows, itself included: a copy, (planes, columns)."""
        row: Vector = self._rows[self._class[thread]].copy()
        row[: self.carried, thread] = np.maximum(row[: self.carried, thread], self.own[:, thread])
        self.advance(slice(thread, thread + 1))
        return row

    def snapshot_warps(self, first: int, stop: int) -> Vector:
        """The common knowledge of warps ``first`` to ``stop`` (threads), each by any of its lanes.

        The plane EXEC has the knowledge of any of the warps: all of them have come so far.
        """
        threads = slice(first, stop)
        shared = self.uniform(threads)
        if shared >= 0 and stop - first > WARP:
            # a warp knows its own lanes' latest, but the other warps do not
            row: Vector = self._rows[shared].copy()
        else:
            row = self._rows[0]
            for warp in range(first, stop, WARP):
                best = self.of_warp(warp, min(warp + WARP, stop))
                if warp > first:
                    furthest = np.maximum(row[EXEC], best[EXEC])
                    np.minimum(row, best, out=row)
                    row[EXEC] = furthest
                else:
                    row = best
        row[EXEC, threads] = np.maximum(row[EXEC, threads], self.own[EXEC, threads])
        self.advance(threads)
        return row

    def of_warp(self, first: int, stop: int) -> Vector:
        """The knowledge of any lane of a warp, ``first`` to ``stop``: a copy, (planes, columns)."""
        best: Vector = self._rows[np.unique(self._class[first:stop])].max(axis=0)
        best[: self.carried, first:stop] = np.maximum(
            best[: self.carried, first:stop], self.own[:, first:stop]
        )
        return best

    # ---- learning

    def acquire(self, threads: Threads, source: Vector, first: int = AVC) -> None:
        """Join ``source`` into the knowledge of threads (planes from ``first`` on)."""
        planes = slice(first, self.carried)
        mine = self._edit(threads)
        for row in mine:
            view = self._rows[row, planes]
            np.maximum(view, source[planes], out=view)
        if len(mine) > 1:
            self._merge(threads, mine)

    def meet(self, threads: Threads) -> None:
        """Join the knowledge of threads, each learning that of all; they continue in new epochs."""
        if self.uniform(threads) < 0:
            joint = self.vector()
            self.publish(threads, joint)
            self.acquire(threads, joint)
            return
        for row in self._edit(threads):
            view = self._rows[row, : self.carried]
            view[:, threads] = np.maximum(view[:, threads], self.own[:, threads])
        self.advance(threads)

    def learn(
        self,
        threads: Threads,
        slots: NDArray[np.int64],
        epochs: NDArray[np.uint32],
        clock: Vector | None,
        first: int = AVC,
    ) -> None:
        """Record that threads have seen operations complete, in planes from ``first`` on.

        ``clock`` is the issuers' knowledge: completions of earlier operations follow from it, and
        that the issuers had come so far.
        """
        carried = self.carried
        for row in self._edit(threads):
            view = self._rows[row, :carried]
            view[first:, slots] = np.maximum(view[first:, slots], epochs)
            if clock is not None:
                late = view[:, self.threads :]
                np.maximum(late, clock[:carried, self.threads :], out=late)
                np.maximum(view[EXEC], clock[EXEC], out=view[EXEC])

    def fence(self, threads: Threads, target: int, source: int) -> None:
        """Everything known in plane ``source`` becomes known in ``target`` as well."""
        for row in self._edit(threads):
            view = self._rows[row]
            np.maximum(view[target], view[source], out=view[target])
        if target < self.carried:
            self.own[target, threads] = np.maximum(
                self.own[target, threads], self.own[source, threads]
            )
            self.advance(threads)

    # ---- asking

    def uniform(self, threads: Threads) -> int:
        """The row that all these threads share, or -1."""
        classes = self._class[threads]
        first = int(classes[0])
        count = len(classes)
        if count == 1 or np.count_nonzero(classes == first) == count:
            return first
        return -1

    def known(
        self, plane: int, threads: Threads, slots: NDArray[np.int64], epochs: NDArray[np.uint32]
    ) -> NDArray[np.bool_]:
        """Whether each thread knows the epoch of the slot; ``slots`` is (threads,) or (threads, n).

        A thread's own epochs are for the caller to look at.
        """
        row = self.uniform(threads)
        if row >= 0:
            answer: NDArray[np.bool_] = self._rows[row, plane].take(slots) >= epochs
            return answer
        classes = self._class[threads]
        if slots.ndim > 1:
            classes = classes[:, None]
        return np.asarray(self._rows[classes, plane, slots] >= epochs)

    def knows(self, plane: int, threads: Threads, slot: int, epoch: int) -> NDArray[np.bool_]:
        """Whether each thread knows one epoch; its own columns count."""
        classes = self._class[threads]
        answer = self._rows[classes, plane, slot] >= epoch
        if slot < self.threads:
            here = np.arange(self.threads)[threads] == slot
            answer = answer | here & (self.own[min(plane, self.carried - 1), slot] >= epoch)
        return np.asarray(answer)

    def all_know(self, plane: int, threads: Threads, slot: int, epoch: int) -> bool:
        """Whether all of the threads know one epoch; their own columns count."""
        row = self.uniform(threads)
        if row >= 0 and self._rows[row, plane, slot] >= epoch:
            return True
        return bool(self.knows(plane, threads, slot, epoch).all())

    def common_view(self, threads: Threads, plane: int) -> NDArray[np.uint32] | None:
        """``view`` of threads that share a row; None where they do not."""
        row = self.uniform(threads)
        return np.asarray(self._rows[row, plane]) if row >= 0 else None

    def outer_views(self, first: int, last: int, plane: int) -> list[NDArray[np.uint32]]:
        """``view`` of two threads, once if they share a row."""
        rows = dict.fromkeys((int(self._class[first]), int(self._class[last])))
        return [self._rows[row, plane] for row in rows]

    def view(self, thread: int, plane: int) -> NDArray[np.uint32]:
        """One plane of a thread's row, its own column out of date; not to be kept."""
        return np.asarray(self._rows[self._class[thread], plane])

    def views(self, threads: Threads, plane: int) -> NDArray[np.uint32]:
        """One plane of every row that the threads have, as ``view``: (rows, columns)."""
        return np.asarray(self._rows[np.unique(self._class[threads]), plane])

    # ---- rows

    def _join_rows(self, threads: Threads, target: Vector, planes: slice, columns: slice) -> None:
        row = self.uniform(threads)
        if row >= 0:
            np.maximum(target, self._rows[row, planes, columns], out=target)
        else:
            for one in np.unique(self._class[threads]):
                np.maximum(target, self._rows[one, planes, columns], out=target)

    def _edit(self, threads: Threads) -> list[int]:
        """Rows that belong to these threads alone, with their knowledge."""
        row = self.uniform(threads)
        if row >= 0:
            count = len(self._class[threads])
            if self._uses[row] == count:
                return [row]
            return [self._split(threads, row, count)]
        classes = self._class[threads]
        everyone: NDArray[Any] = np.arange(self.threads)[threads]
        result = []
        for one in np.unique(classes):
            members = everyone[classes == one]
            if self._uses[one] == len(members):
                result.append(int(one))
            else:
                result.append(self._split(members, int(one), len(members)))
        return result

    def _split(self, threads: Threads, row: int, count: int) -> int:
        if not self._free:
            size = len(self._rows)
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._uses += [0] * size
            self._free = list(range(2 * size - 1, size - 1, -1))
        fresh = self._free.pop()
        self._rows[fresh] = self._rows[row]
        self._class[threads] = fresh
        self._uses[row] -= count
        self._uses[fresh] = count
        return fresh

    def _merge(self, threads: Threads, rows: list[int]) -> None:
        """Threads whose rows have become equal share one again."""
        first = rows[0]
        same = [row for row in rows[1:] if np.array_equal(self._rows[row], self._rows[first])]
        if not same:
            return
        classes = self._class[threads]
        classes = np.where(np.isin(classes, same), first, classes)
        self._class[threads] = classes
        for row in same:
            self._uses[first] += self._uses[row]
            self._uses[row] = 0
            self._free.append(row)
