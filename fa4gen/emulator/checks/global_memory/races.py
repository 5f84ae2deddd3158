"""Races in global memory, inside a cluster by its clocks and between clusters by rounds.

Pages that are only read cost next to nothing: their latest readers are listed, and looked at when
somebody writes there after all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.checks.global_memory.pages import PAGE, PAGE_BITS, Accesses, Page
from fa4gen.emulator.checks.order.active_lanes import ActiveLanes
from fa4gen.emulator.checks.order.clocks import AVC, VC
from fa4gen.emulator.checks.sites import is_reduction
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.async_ops import GlobalRange
from fa4gen.emulator.state.memory import GLOBAL_BASE

if TYPE_CHECKING:
    from fa4gen.emulator.checks.options import CheckOptions
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.checks.sites import Sites
    from fa4gen.emulator.checks.synchronisation.rounds import Grid
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import AsyncOp, Warpgroup
    from fa4gen.emulator.state.registers import Mask

_LISTED: Final = 1024
"""Different reads of a page that are listed; from then on each of its cells has a latest reader."""


@dataclass(slots=True)
class Reading:
    """A read of a page that has not been written: ``size`` bytes at each address."""

    addresses: NDArray[np.int64]
    size: int
    owner: Any
    epoch: Any
    number: int
    site: int


@dataclass(slots=True)
class Actor:
    """The actor of an access: threads by their clocks, or an operation by the clock of its issue.

    ``owners`` numbers them over all clusters; ``base`` is the number of the cluster's thread 0.
    ``values`` are the bytes that threads are about to store, if known.
    """

    threads: ClusterThreads
    base: int
    owners: Any
    epochs: Any
    wg: Warpgroup
    mask: Mask
    site: Instruction
    kind: str
    number: int
    strong: bool
    active: ActiveLanes | None = None
    op: AsyncOp | None = None
    values: NDArray[Any] | None = None

    def part(self, which: NDArray[np.bool_]) -> Actor:
        """Some of the threads."""
        if self.active is None:
            return self
        ids = self.active.ids[which]
        active = ActiveLanes(self.wg, self.mask, ids, ids, ids[:, None])
        return Actor(
            self.threads,
            self.base,
            self.owners[which],
            self.epochs[which],
            self.wg,
            self.mask,
            self.site,
            self.kind,
            self.number,
            self.strong,
            active,
            values=None if self.values is None else self.values[which],
        )


class GlobalChecks:
    """Shadow of the whole global memory of a launch."""

    def __init__(self, sites: Sites, grid: Grid, options: CheckOptions) -> None:
        self.sites = sites
        self.grid = grid
        self.options = options
        self._pages: dict[int, Page] = {}
        self._read: dict[int, dict[tuple[Any, ...], Reading]] = {}

    def _base(self, threads: ClusterThreads) -> int:
        return threads.cluster.index * (threads.clocks.nobody + 1)

    # ---- events

    def access(
        self,
        threads: ClusterThreads,
        active: ActiveLanes,
        addresses: NDArray[Any],
        size: int,
        kind: str,
        strong: bool,
        site: Instruction,
        values: NDArray[Any] | None = None,
    ) -> None:
        """Threads access ``size`` bytes at each address."""
        low, high = int(addresses.min()) >> PAGE_BITS, int(addresses.max()) >> PAGE_BITS
        if kind == "read" and strong:
            kind = "strong read"
        base = self._base(threads)
        number = self.sites.generic(site, "atomic" if strong else kind)
        actor = Actor(
            threads,
            base,
            active.ids + base,
            threads.clocks.epochs[active.threads].copy(),
            active.wg,
            active.mask,
            site,
            kind,
            number,
            strong,
            active,
            values=values if kind == "write" else None,
        )
        at = addresses.astype(np.int64)
        if low == high:
            self._on_page(actor, low, at, size)
            return
        pages = at >> PAGE_BITS
        for page in np.unique(pages).tolist():
            which = pages == page
            self._on_page(actor.part(which), page, at[which], size)

    def operation(self, threads: ClusterThreads, op: AsyncOp, number: int) -> None:
        """An asynchronous operation reads and writes global memory from now on."""
        for kind, ranges, early in (("read", op.reads, 1), ("write", op.writes, 0)):
            pieces = stretches(op, ranges)
            if not pieces:
                continue
            base = self._base(threads)
            strong = kind == "write" and is_reduction(op)
            actor = Actor(
                threads,
                base,
                base + op.slot,
                op.epoch - early,
                op.wg,
                None,
                op.site,
                kind,
                number,
                strong,
                op=op,
            )
            for starts, size in pieces:
                self._stretches(actor, starts, size)

    def _stretches(self, actor: Actor, starts: NDArray[np.int64], size: int) -> None:
        """Stretches of ``size`` bytes, page by page."""
        first, last = starts >> PAGE_BITS, (starts + size - 1) >> PAGE_BITS
        inside = first == last
        for page in np.unique(first[inside]).tolist():
            self._on_page(actor, page, starts[inside & (first == page)], size)
        for start in starts[~inside].tolist():
            stop = start + size
            while start < stop:
                page = start >> PAGE_BITS
                end = min(stop, (page + 1) << PAGE_BITS)
                self._on_page(actor, page, np.array([start]), end - start)
                start = end

    # ---- one page

    def _on_page(self, actor: Actor, number: int, at: NDArray[np.int64], size: int) -> None:
        page = self._pages.get(number)
        cluster = actor.threads.cluster.index
        current = int(self.grid.rounds[cluster])
        if page is None:
            if actor.kind == "strong read":
                return
            if actor.kind == "read" and self._list(actor, number, at, size, current):
                return
            page = self._pages[number] = self._heat(number)
        page.narrow(size)
        cells = page.cells(at & (PAGE - 1), size)
        self._check(actor, page, cells, page.writes, at)
        owners, epochs = actor.owners, actor.epochs
        if actor.active is not None and cells.ndim > 1:
            owners, epochs = owners[:, None], epochs[:, None]
        if actor.kind == "read":
            page.readers().note(cells, owners, epochs, current, actor.number)
        elif actor.kind != "strong read":
            if page.reads is not None:
                self._check(actor, page, cells, page.reads)
                page.reads.owner[cells] = -1
            page.writes.note(cells, owners, epochs, current, actor.number)

    def _list(
        self, actor: Actor, number: int, at: NDArray[np.int64], size: int, current: int
    ) -> bool:
        """Remember a read of an unwritten page; a repeated one counts by its last time.

        False where the list is full.
        """
        listed = self._read.setdefault(number, {})
        owners = actor.owners
        who = owners.tobytes() if isinstance(owners, np.ndarray) else int(owners)
        key = (actor.number, who, size, at.tobytes())
        if key not in listed and len(listed) >= _LISTED:
            return False
        listed[key] = Reading(at, size, owners, actor.epochs, current, actor.number)
        return True

    def _heat(self, number: int) -> Page:
        """A page whose cells are checked from now on: the reads recorded for it so far count."""
        page = Page()
        for reading in self._read.pop(number, {}).values():
            at = reading.addresses - (number << PAGE_BITS)
            cells = page.cells(at, reading.size)
            owner, epoch = reading.owner, reading.epoch
            if cells.ndim > 1 and np.ndim(owner):
                owner, epoch = owner[:, None], epoch[:, None]
            page.readers().note(cells, owner, epoch, reading.number, reading.site)
        return page

    def _check(
        self,
        actor: Actor,
        page: Page,
        cells: NDArray[np.int64],
        earlier: Accesses,
        written: NDArray[np.int64] | None = None,
    ) -> None:
        """Compare an access with earlier reads, or with writes: then ``written`` says where."""
        owners = earlier.owner[cells]
        touched = owners >= 0
        if not np.count_nonzero(touched):
            return
        epochs = earlier.epoch[cells]
        clocks = actor.threads.clocks
        slots = owners - actor.base
        inside = (slots >= 0) & (slots <= clocks.nobody)
        here = np.where(inside, slots, clocks.nobody)
        if actor.active is not None:
            mine = actor.owners if cells.ndim == 1 else actor.owners[:, None]
            good = clocks.known(VC, actor.active.threads, here, epochs) | (owners == mine)
            fenced = good
        else:
            assert actor.op is not None
            good = actor.op.clock[VC][here] >= epochs
            fenced = good
            if (
                self.options.proxies
                and written is not None
                and actor.op.notes.get("proxy") != "generic"
            ):
                fenced = good & ((here >= clocks.threads) | (actor.op.clock[AVC][here] >= epochs))
        cluster = actor.threads.cluster.index
        writes = actor.op is None and actor.kind in ("write", "atomic")
        known = self.grid.before_writes(cluster) if writes else self.grid.known(cluster)
        stride = clocks.nobody + 1
        good = np.where(inside, good, known.of(owners // stride) >= earlier.round[cells])
        bad = touched & ~good
        if actor.strong and np.count_nonzero(bad):
            bad &= ~self._are_atomic(actor, owners, earlier.site[cells])
        if np.count_nonzero(bad):
            if written is not None and actor.values is not None:
                same = self._holds(written, actor.values)
                equal = bad & (same if cells.ndim == 1 else same[:, None])
                # the bytes that an operation is to write may not be there yet
                equal &= owners % stride < clocks.threads
                bad &= ~equal
                if equal.any():
                    self._report(actor, page, cells, earlier, equal, "race", Severity.REVIEW)
            if bad.any():
                self._report(actor, page, cells, earlier, bad, "race")
        elif actor.op is not None and np.count_nonzero(
            unfenced := touched & inside & good & ~fenced
        ):
            self._report(actor, page, cells, earlier, unfenced, "missing-proxy-fence")

    def _are_atomic(
        self, actor: Actor, owners: NDArray[np.int64], numbers: NDArray[np.int32]
    ) -> NDArray[np.bool_]:
        """Whether earlier accesses and a strong one are: both, in scopes that have both threads."""
        threads = actor.threads
        clusters, slots = np.divmod(owners, threads.clocks.nobody + 1)
        other = clusters != threads.cluster.index
        far = np.where(other, 2, 0)
        if actor.active is not None:
            mine = actor.active.ids if owners.ndim == 1 else actor.active.ids[:, None]
            peer = (slots < threads.clocks.threads) & (
                slots // threads.stride != mine // threads.stride
            )
            far = np.where(~other & peer, 1, far)
        own = self.sites.get(actor.number).reach
        result = np.zeros(numbers.shape, np.bool_)
        for number in np.unique(numbers).tolist():
            if self.sites.is_atomic(number):
                reach = min(own, self.sites.get(number).reach)
                result |= (numbers == number) & (far <= reach)
        return result

    def _holds(self, at: NDArray[np.int64], values: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether the bytes to be stored at each address are there already."""
        memory = self.sites.machine.memory.data
        here = memory[(at - GLOBAL_BASE)[:, None] + np.arange(values.shape[1])]
        return np.asarray((here == values).all(axis=1))

    def _report(
        self,
        actor: Actor,
        page: Page,
        cells: NDArray[np.int64],
        earlier: Accesses,
        bad: NDArray[np.bool_],
        kind: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        where = tuple(np.argwhere(bad)[0])
        cell = int(cells[where])
        number = next(key for key, value in self._pages.items() if value is page)
        machine = self.sites.machine
        place = machine.memory.describe((number << PAGE_BITS) + (cell << page.shift))
        threads = actor.threads
        stride = threads.clocks.nobody + 1
        cluster, slot = divmod(int(earlier.owner[cell]), stride)
        if cluster == threads.cluster.index:
            who = threads.who(slot)
        else:
            rank, thread = divmod(slot, threads.stride)
            who = f"thread {thread} of the CTA of rank {rank} in cluster {cluster}"
        before = self.sites.earlier(int(earlier.site[cell]), who)
        what = f"{actor.op.kind} {actor.kind}s" if actor.op else f"{actor.kind} of"
        wg, mask = actor.wg, actor.mask
        if actor.active is not None:
            wg, mask = threads.one(int(actor.active.ids[where[0]]))
        text = (
            "without fence.proxy.async in between (generic and async proxy)"
            if kind == "missing-proxy-fence"
            else "and nothing orders the two"
        )
        if severity is Severity.REVIEW:
            text += " (both store the same value)"
        self.sites.find(
            kind,
            f"{what} {place} after {before} {text}",
            actor.site,
            wg,
            mask,
            severity,
            earlier=int(earlier.site[cell]),
        )


def stretches(op: AsyncOp, ranges: Any) -> list[tuple[NDArray[np.int64], int]]:
    """Starts and size of the contiguous pieces of global memory among ``ranges``.

    The range of a tensor copy is only the hull of a box; ``rows`` of a range has the starts of the
    box's lines and their width. A hull without them is passed over.
    """
    result: list[tuple[NDArray[np.int64], int]] = []
    for part in ranges:
        if not isinstance(part, GlobalRange):
            continue
        rows = getattr(part, "rows", None)
        if rows is not None:
            starts, width = rows
            result.append((np.asarray(starts, np.int64), int(width)))
        elif not op.kind.startswith("tensor"):
            result.append((np.array([part.start]), part.stop - part.start))
    return result
