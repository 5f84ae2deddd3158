"""The machine: CTAs, clusters, and their methods for the instruction families.

These classes refer to each other in a circle, so they share this file; other parts are below it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fa4gen.emulator.state.async_ops import AsyncEngine, GlobalRange
from fa4gen.emulator.state.attached import State
from fa4gen.emulator.state.events import Events
from fa4gen.emulator.state.findings import Findings
from fa4gen.emulator.state.mbarriers import MAX_COUNT, Phases
from fa4gen.emulator.state.memory import OFFSET_MASK, RANK_SHIFT, GlobalMemory, SharedMemory
from fa4gen.emulator.state.registers import WARPGROUP_LANES, Mask, Registers
from fa4gen.emulator.state.tally import Tally
from fa4gen.emulator.state.tensor_memory import TensorMemory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fa4gen.emulator.names import Names
    from fa4gen.emulator.ptx.flow.pending_loads import PendingLoads
    from fa4gen.emulator.ptx.syntax import Function, Instruction, RegisterClass
    from fa4gen.emulator.state.geometry import Geometry
    from fa4gen.emulator.state.global_arrays import Pending
    from fa4gen.emulator.state.layout import Layout
    from fa4gen.emulator.state.schedule import Schedule


SLOTS_PER_CTA: Final = 64
"""Asynchronous operations under way that the checks can distinguish at first; a launch that has
more begins again with twice as many."""


@dataclass(frozen=True, slots=True)
class SharedRange:
    """Bytes ``start`` to ``stop`` of a CTA's shared memory."""

    cta: Cta
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class TensorRange:
    """A rectangle of a CTA's tensor memory: lanes and 32-bit columns, half open."""

    cta: Cta
    first_lane: int
    last_lane: int
    first_column: int
    last_column: int


@dataclass(slots=True, eq=False)
class AsyncOp:
    """One asynchronous operation.

    kind      a word: ``tensor copy``, ``wgmma``, ``tcgen05.mma``, ``bulk store``
    wg/lane the issuing thread (of a warp or warpgroup operation its first lane)
    site      the instruction
    run       moves the data; called once
    finish    signals completion; called once, after run
    after     the operations that have to run before this one
    reads/writes  accesses to shared and global memory, through the async proxy
    tensor_reads/tensor_writes  accesses to tensor memory
    unit      which functional unit it occupies in the cost model: ``tma``, ``tensor``, ``other``
    cycles    how long it occupies the unit in the cost model
    continues  the operation of the same thread just before, nothing in between, whose target it
               has: all that orders one orders the other
    slot, epoch, clock  belong to the checks: the operation's place in the vector clocks
    """

    kind: str
    wg: Warpgroup
    lane: int
    site: Instruction
    run: Callable[[], None]
    finish: Callable[[], None] | None = None
    after: tuple[AsyncOp, ...] = ()
    reads: tuple[SharedRange | GlobalRange, ...] = ()
    writes: tuple[SharedRange | GlobalRange, ...] = ()
    tensor_reads: tuple[TensorRange, ...] = ()
    tensor_writes: tuple[TensorRange, ...] = ()
    unit: str = "other"
    cycles: float = 0.0
    continues: AsyncOp | None = None
    done: bool = False
    slot: int = -1
    epoch: int = 0
    clock: Any = None
    end_time: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)

    def carry_out(self) -> None:
        """Move the data, then signal completion; called once."""
        self.run()
        if self.finish is not None:
            self.finish()
        self.after = ()

    def __str__(self) -> str:
        return f"{self.kind} issued at {self.site.position}"


@dataclass(slots=True, eq=False)
class Mbarrier(Phases):
    """An mbarrier in the shared memory of ``cta``."""

    cta: Cta = field(kw_only=True)

    @property
    def name(self) -> str:
        """The barrier's name if the caller gave one, else its offset."""
        return self.cta.name_of(self.offset)

    def describe(self) -> str:
        """State."""
        return (
            f"{self.name} (phase {self.phase}, {self.pending} of {self.expected} arrivals and "
            f"{self.transactions} bytes missing, last arrival: {self.last})"
        )

    def signal_transaction(self, op: AsyncOp, count: int) -> None:
        """An asynchronous operation has written ``count`` bytes that this barrier counts."""
        machine = self.cta.machine
        machine.observer.signalled(op, self)
        self.pending_time = max(self.pending_time, op.end_time)
        machine.progress()
        self.complete_transaction(count, op)
        if abs(self.transactions) > MAX_COUNT:
            machine.find(
                "transaction-bytes",
                f"{self.name}: {self.transactions} bytes outstanding, "
                f"more than the {MAX_COUNT} that a barrier can count",
                op.site,
                op.wg,
                None,
            )

    def signal_arrival(self, op: AsyncOp) -> None:
        """An asynchronous operation (a commit) arrives once."""
        machine = self.cta.machine
        machine.observer.signalled(op, self)
        self.pending_time = max(self.pending_time, op.end_time)
        machine.progress()
        if self.pending == 0:
            machine.fault(
                "over-arrival",
                f"{self.describe()}: an arrival more than it expects",
                op.site,
                op.wg,
                None,
            )
        self.arrive(1, op)

    def completed(self) -> None:
        machine = self.cta.machine
        machine.observer.phase_completed(self)
        machine.wake(self)


class Warpgroup(Registers):
    """Up to 128 consecutive threads of ``cta``."""

    def __init__(
        self,
        cta: Cta,
        index: int,
        lanes: int,
        registers: Mapping[RegisterClass, int],
        local_bytes: int,
    ) -> None:
        super().__init__(cta.label, cta.index, index, lanes, registers, local_bytes)
        self.cta = cta
        self.machine: Machine = cta.machine
        # lanes of a warp have diverged and not converged since; set by the observer
        self.diverged = False
        # of guarded instructions: whether a lane has executed it, for the coverage
        self.held = cta.machine.tally.held
        self.state: State = {}
        # work that families put off to the end of a straight run of instructions
        self.deferred: list[Callable[[], None]] = []


class Cta:
    """One thread block: its shared memory, its barriers and its warpgroups."""

    def __init__(self, cluster: Cluster, rank: int, ctaid: tuple[int, int, int]) -> None:
        machine = cluster.machine
        self.machine = machine
        self.cluster = cluster
        self.rank = rank
        self.ctaid = ctaid
        grid = machine.geometry.grid
        self.index = ctaid[0] + grid[0] * (ctaid[1] + grid[1] * ctaid[2])
        self.label = f"CTA {self.index}"
        self.threads = machine.geometry.threads
        self.shared_base = np.uint32(rank << RANK_SHIFT)
        self.shared = SharedMemory(machine.shared_end)
        self.barriers: dict[int, Mbarrier] = {}
        self.state: State = {}
        self.tensor_memory: TensorMemory | None = None
        if machine.sm >= 100:
            self.tensor_memory = TensorMemory()
        count = -(-self.threads // WARPGROUP_LANES)
        function = machine.function
        self.warpgroups = [
            Warpgroup(
                self,
                index,
                min(WARPGROUP_LANES, self.threads - index * WARPGROUP_LANES),
                function.registers,
                machine.layout.local_bytes,
            )
            for index in range(count)
        ]

    @property
    def alive(self) -> bool:
        """Whether a thread of the CTA has not left yet."""
        return any(wg.alive for wg in self.warpgroups)

    def name_of(self, offset: int) -> str:
        """The name of a byte of shared memory, or its offset, and its CTA."""
        name = self.place_of(offset)
        return name if len(self.cluster.ctas) == 1 else f"{name} of rank {self.rank}"

    def place_of(self, offset: int) -> str:
        """The name of a byte of shared memory in every CTA, or its offset."""
        machine = self.machine
        name = machine.names.of_offset(offset, machine.dynamic_start)
        if name is None:
            for start, stop, variable in machine.layout.shared_names:
                if start <= offset < stop:
                    name = variable if offset == start else f"{variable} + {offset - start}"
        if name is None and offset >= machine.dynamic_start:
            name = f"dynamic shared + {offset - machine.dynamic_start}"
        return name or f"shared + {offset}"


class Cluster:
    """CTAs that see each other's shared memory; a cluster of one where the kernel has none."""

    def __init__(self, machine: Machine, index: int, first: tuple[int, int, int]) -> None:
        self.machine = machine
        self.index = index
        self.first = first
        self.state: State = {}
        self.ctas: list[Cta] = []
        x, y, z = machine.geometry.cluster
        for rank in range(x * y * z):
            at = (first[0] + rank % x, first[1] + rank // x % y, first[2] + rank // (x * y))
            self.ctas.append(Cta(self, rank, at))

    @property
    def alive(self) -> bool:
        return any(cta.alive for cta in self.ctas)


class Observer(Events[Warpgroup, Cta, Cluster, AsyncOp, Mbarrier, TensorRange]):
    """The observer of a launch; this one ignores all that happens."""


class Machine(Findings):
    """One launch under way."""

    def __init__(
        self,
        *,
        function: Function,
        layout: Layout,
        memory: GlobalMemory,
        geometry: Geometry,
        parameters: NDArray[np.uint8],
        sm: int,
        names: Names,
        random: Random,
        eager: bool,
        registers_per_thread: int,
        slots_per_cta: int = SLOTS_PER_CTA,
        pending_loads: PendingLoads | None = None,
        pending: Pending | None = None,
        tally: Tally | None = None,
    ) -> None:
        super().__init__(names)
        self.function = function
        self.layout = layout
        self.memory = memory
        self.geometry = geometry
        self.parameters = parameters
        self.sm = sm
        self.random = random
        self.registers_per_thread = registers_per_thread
        self.slots_per_cta = slots_per_cta
        self.pending_loads = pending_loads
        self.pending = pending
        self.dynamic_start = layout.static_shared_end
        self.shared_end = layout.static_shared_end + geometry.dynamic_shared
        self.engine = AsyncEngine(random, eager)
        self.tally = tally or Tally(0, 0)
        self.observer: Observer
        self.scheduler: Schedule
        self.effects = 0
        self.ticks = 0

    # ---- progress and waiting

    def progress(self) -> None:
        """Something happened that other threads could be waiting for."""
        self.effects += 1

    def wake(self, barrier: Mbarrier) -> None:
        """A phase has completed: lanes that wait on the barrier test it again."""
        self.progress()
        self.scheduler.wake(id(barrier))

    def submit(self, op: AsyncOp) -> None:
        """Take over an asynchronous operation."""
        if self.observer.enabled:
            self.observer.issued(op)
        self.progress()
        self.engine.submit(op)

    def complete(self, op: AsyncOp) -> None:
        """Make sure that an operation has taken effect."""
        self.engine.complete(op)

    def cancel_cluster(self) -> tuple[int, int, int] | None:
        """Take a cluster that has not started off the grid: its first CTA, or None."""
        return self.scheduler.cancel_cluster()

    # ---- addresses and barriers

    def shared_at(
        self, wg: Warpgroup, address: int, site: Instruction, cluster: bool
    ) -> tuple[Cta, int]:
        """The CTA and the offset of a shared address; ``cluster`` allows other CTAs."""
        rank, offset = address >> RANK_SHIFT, address & OFFSET_MASK
        cta = wg.cta
        if not cluster:
            if rank not in (0, cta.rank):
                self.fault(
                    "out-of-bounds",
                    f"shared address {address:#x} is not in the CTA's own window",
                    site,
                    wg,
                    None,
                )
            return cta, offset
        if rank >= len(cta.cluster.ctas):
            self.fault(
                "out-of-bounds",
                f"shared address {address:#x} names rank {rank} of a "
                f"cluster of {len(cta.cluster.ctas)}",
                site,
                wg,
                None,
            )
        return cta.cluster.ctas[rank], offset

    def barrier(
        self, cta: Cta, offset: int, wg: Warpgroup, mask: Mask, site: Instruction
    ) -> Mbarrier:
        """The mbarrier at an offset of a CTA's shared memory."""
        barrier = cta.barriers.get(offset)
        if barrier is None:
            if offset % 8:
                self.fault(
                    "misaligned",
                    f"an mbarrier at offset {offset} of shared memory is not 8-byte aligned",
                    site,
                    wg,
                    mask,
                )
            self.fault(
                "barrier-misuse",
                f"{cta.name_of(offset)} is no initialised mbarrier",
                site,
                wg,
                mask,
            )
        return barrier

    def clock(self, name: str) -> Any:
        """A clock register: a count that only grows."""
        self.ticks += 1
        if name.endswith(("64", "globaltimer")):
            return np.uint64(self.ticks)
        if name.endswith("hi"):
            return np.uint32(self.ticks >> 32)
        return np.uint32(self.ticks & 0xFFFFFFFF)
