"""The machine: CTAs, clusters, and what the instruction families may ask of it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from fa4gen.emulator.report import FindingLog, Severity, Text
from fa4gen.emulator.state.async_ops import AsyncEngine, AsyncOp
from fa4gen.emulator.state.gang import GANG_LANES, Gang, Mask
from fa4gen.emulator.state.memory import OFFSET_MASK, RANK_SHIFT, GlobalMemory, SharedMemory
from fa4gen.emulator.state.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fa4gen.emulator.names import Names
    from fa4gen.emulator.ptx.flow.pending_loads import PendingLoads
    from fa4gen.emulator.ptx.syntax import Function, Instruction
    from fa4gen.emulator.state.geometry import Geometry
    from fa4gen.emulator.state.layout import Layout
    from fa4gen.emulator.state.mbarriers import Mbarrier
    from fa4gen.emulator.state.observer import Observer
    from fa4gen.emulator.state.tensor_memory import TensorMemory


SLOTS_PER_CTA: Final = 64
"""Asynchronous operations under way that the checks can distinguish at first; a launch that has
more begins again with twice as many."""


class Stop(Exception):  # noqa: N818 (it is no error of the program)
    """The launch cannot go on; the finding that says why has been recorded."""


class Cta:
    """One thread block: its shared memory, its barriers and its gangs."""

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
        self.state: dict[str, Any] = {}
        self.tensor_memory: TensorMemory | None = None
        if machine.sm >= 100:
            from fa4gen.emulator.state.tensor_memory import TensorMemory

            self.tensor_memory = TensorMemory()
        count = -(-self.threads // GANG_LANES)
        function = machine.function
        self.gangs = [
            Gang(
                self,
                index,
                min(GANG_LANES, self.threads - index * GANG_LANES),
                function.registers,
                machine.layout.local_bytes,
            )
            for index in range(count)
        ]

    @property
    def alive(self) -> bool:
        """Whether a thread of the CTA has not left yet."""
        return any(gang.alive for gang in self.gangs)

    def name_of(self, offset: int) -> str:
        """What a byte of shared memory is called, or its offset, and whose it is."""
        name = self.place_of(offset)
        return name if len(self.cluster.ctas) == 1 else f"{name} of rank {self.rank}"

    def place_of(self, offset: int) -> str:
        """What a byte of shared memory is called in every CTA, or its offset."""
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
        self.state: dict[str, Any] = {}
        self.ctas: list[Cta] = []
        x, y, z = machine.geometry.cluster
        for rank in range(x * y * z):
            at = (first[0] + rank % x, first[1] + rank // x % y, first[2] + rank // (x * y))
            self.ctas.append(Cta(self, rank, at))

    @property
    def alive(self) -> bool:
        return any(cta.alive for cta in self.ctas)


class Machine:
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
        pending_writes: tuple[tuple[int, int], ...] = (),
        tally: Tally | None = None,
    ) -> None:
        self.function = function
        self.layout = layout
        self.memory = memory
        self.geometry = geometry
        self.parameters = parameters
        self.sm = sm
        self.names = names
        self.random = random
        self.registers_per_thread = registers_per_thread
        self.slots_per_cta = slots_per_cta
        self.pending_loads = pending_loads
        self.pending_writes = pending_writes
        self.dynamic_start = layout.static_shared_end
        self.shared_end = layout.static_shared_end + geometry.dynamic_shared
        self.engine = AsyncEngine(random, eager)
        self.log = FindingLog()
        self.tally = tally or Tally(0, 0)
        self.observer: Observer
        self.scheduler: Any = None
        self.effects = 0
        self.ticks = 0
        self._remarked: set[tuple[str, Instruction]] = set()

    # ---- findings

    def find(
        self,
        kind: str,
        message: Text,
        site: Instruction,
        gang: Gang,
        mask: Mask,
        severity: Severity = Severity.ERROR,
        *,
        earlier: Instruction | None = None,
    ) -> None:
        """Record that something is wrong, and go on.

        ``earlier`` is the other instruction where two are at odds. A message that takes work to
        make may come as a function: it is called for the first finding of its group only.
        """
        self.log.add(
            kind,
            severity,
            message,
            site,
            lambda: self.who(gang, mask),
            earlier=earlier,
            cta=gang.cta.index,
        )

    def remark(
        self,
        kind: str,
        message: str,
        site: Instruction,
        gang: Gang,
        mask: Mask,
        severity: Severity = Severity.REVIEW,
    ) -> None:
        """Record a habit of the code: once for each kind and instruction."""
        if (kind, site) not in self._remarked:
            self._remarked.add((kind, site))
            self.find(kind, message, site, gang, mask, severity)

    def fault(self, kind: str, message: str, site: Instruction, gang: Gang, mask: Mask) -> NoReturn:
        """Record an error after which the kernel could not go on, and stop the launch."""
        self.find(kind, message, site, gang, mask)
        raise Stop(kind)

    def who(self, gang: Gang, mask: Mask) -> str:
        """Threads for people, with their role if it has a name."""
        lanes = gang.lanes_of(mask)
        first, last = gang.thread(int(lanes[0])), gang.thread(int(lanes[-1]))
        role = self.names.of_threads(first, last)
        text = gang.describe(mask)
        return f"{role} ({text})" if role else text

    # ---- progress and waiting

    def progress(self) -> None:
        """Something happened that other threads could be waiting for."""
        self.effects += 1

    def wake(self, barrier: Mbarrier) -> None:
        """A phase has completed: whoever waits on the barrier looks again."""
        self.progress()
        self.scheduler.wake(barrier)

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
        first: tuple[int, int, int] | None = self.scheduler.cancel_cluster()
        return first

    # ---- addresses and barriers

    def shared_at(
        self, gang: Gang, address: int, site: Instruction, cluster: bool
    ) -> tuple[Cta, int]:
        """The CTA and the offset of a shared address; ``cluster`` allows other CTAs."""
        rank, offset = address >> RANK_SHIFT, address & OFFSET_MASK
        cta = gang.cta
        if not cluster:
            if rank not in (0, cta.rank):
                self.fault(
                    "out-of-bounds",
                    f"shared address {address:#x} is not in the CTA's own window",
                    site,
                    gang,
                    None,
                )
            return cta, offset
        if rank >= len(cta.cluster.ctas):
            self.fault(
                "out-of-bounds",
                f"shared address {address:#x} names rank {rank} of a "
                f"cluster of {len(cta.cluster.ctas)}",
                site,
                gang,
                None,
            )
        return cta.cluster.ctas[rank], offset

    def barrier(self, cta: Cta, offset: int, gang: Gang, mask: Mask, site: Instruction) -> Mbarrier:
        """The mbarrier at an offset of a CTA's shared memory."""
        barrier = cta.barriers.get(offset)
        if barrier is None:
            if offset % 8:
                self.fault(
                    "misaligned",
                    f"an mbarrier at offset {offset} of shared memory is not 8-byte aligned",
                    site,
                    gang,
                    mask,
                )
            self.fault(
                "barrier-misuse",
                f"{cta.name_of(offset)} is no initialised mbarrier",
                site,
                gang,
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
