"""A machine with nothing to run: the tests tell its observer what threads do."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.emulator.checks.observer import RaceObserver
from fa4gen.emulator.checks.options import CheckOptions
from fa4gen.emulator.names import Names
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.geometry import Geometry
from fa4gen.emulator.state.machine import AsyncOp, Cluster, Cta, Machine, Mbarrier, SharedRange
from fa4gen.emulator.state.memory import GlobalMemory

if TYPE_CHECKING:
    from fa4gen.emulator.state.machine import Warpgroup
    from fa4gen.emulator.state.registers import Mask

SHARED = 64 * 1024


class Loads:
    """Stands for PendingLoads: whether values of loads are ``needed`` before they are released."""

    def __init__(self) -> None:
        self.needed = False

    def any_open(self, release: Instruction) -> bool:
        return True

    def is_open(self, load: Instruction, release: Instruction | None) -> bool:
        return not self.needed


class World:
    """Clusters of ``ctas`` CTAs with ``threads`` threads each."""

    def __init__(
        self, threads: int = 256, ctas: int = 1, sm: int = 90, clusters: int = 1, **options: Any
    ) -> None:
        self.loads: Any = Loads()
        memory = GlobalMemory()
        self.array = memory.reserve(1 << 20, "array")
        memory.seal()
        grid = (ctas * clusters, 1, 1)
        self.machine = Machine(
            function=SimpleNamespace(registers={"p": 1, "h": 1, "r": 1, "d": 1, "q": 1}),
            layout=SimpleNamespace(
                local_bytes=0, static_shared_end=1024, shared_names=[(1024, SHARED, "tile")]
            ),
            memory=memory,
            geometry=Geometry(grid, (threads, 1, 1), (ctas, 1, 1), SHARED - 1024),
            parameters=np.zeros(0, np.uint8), sm=sm, names=Names(), random=Random(0), eager=False,
            registers_per_thread=128, pending_loads=self.loads,
        )  # fmt: skip
        self.machine.scheduler = SimpleNamespace(wake=lambda barrier: None)
        self.observer = RaceObserver(self.machine, options=CheckOptions(**options))
        self.machine.observer = self.observer
        self.clusters = [
            Cluster(self.machine, index, (index * ctas, 0, 0)) for index in range(clusters)
        ]
        for cluster in self.clusters:
            self.observer.cluster_starts(cluster)
        self.line = 0

    @property
    def cta(self) -> Cta:
        return self.clusters[0].ctas[0]

    def wg(self, index: int = 0, rank: int = 0, cluster: int = 0) -> Warpgroup:
        return self.clusters[cluster].ctas[rank].warpgroups[index]

    def site(self, text: str) -> Instruction:
        self.line += 1
        opcode, *modifiers = text.split(".")
        return Instruction(text, opcode, tuple(modifiers), (), self.line)

    # ---- what threads do

    def lanes(self, wg: Warpgroup, lanes: Any) -> Mask:
        if lanes is None:
            return None
        mask = np.zeros(wg.lanes, np.bool_)
        mask[lanes] = True
        return mask

    def access(
        self,
        wg: Warpgroup,
        kind: str,
        offsets: Any,
        size: int = 4,
        lanes: Any = None,
        cta: Cta | None = None,
        text: str | None = None,
    ) -> None:
        """Each lane reads or writes; one offset for the first lane gives all a row of them."""
        mask = self.lanes(wg, lanes)
        count = wg.lanes if mask is None else int(mask.sum())
        if np.ndim(offsets) == 0:
            offsets = offsets + size * np.arange(count)
        text = text or {"read": "ld.shared.b32", "write": "st.shared.b32"}.get(kind, "atom.add")
        self.observer.shared_access(
            wg, mask, cta or wg.cta, np.asarray(offsets), size, kind, self.site(text)
        )

    def write(self, wg: Warpgroup, offsets: Any, **more: Any) -> None:
        self.access(wg, "write", offsets, **more)

    def read(self, wg: Warpgroup, offsets: Any, **more: Any) -> None:
        self.access(wg, "read", offsets, **more)

    def sync(self, *warpgroups: Warpgroup, key: Any = "bar", release: bool = True) -> None:
        """All lanes of the warpgroups meet."""
        for wg in warpgroups:
            self.observer.rendezvous_arrive(wg, None, key, release)
        self.observer.rendezvous_reset(key)
        for wg in warpgroups:
            self.observer.rendezvous_leave(wg, None, key, True)

    def fence(
        self, wg: Warpgroup, kind: str = "fence.proxy.async.shared::cta", lanes: Any = None
    ) -> None:
        self.observer.fence(wg, self.lanes(wg, lanes), kind, self.site(kind))

    # ---- mbarriers

    def barrier(
        self,
        wg: Warpgroup,
        offset: int,
        count: int,
        lane: int = 0,
        fence: bool = True,
        cta: Cta | None = None,
    ) -> Mbarrier:
        cta = cta or wg.cta
        site = self.site("mbarrier.init.shared::cta.b64")
        barrier = Mbarrier(offset, count, count, cta=cta, site=site)
        cta.barriers[offset] = barrier
        self.observer.barrier_init(wg, lane, barrier, site)
        if fence:
            self.fence(wg, "fence.mbarrier_init.release.cluster", [lane])
        return barrier

    def arrive(
        self, wg: Warpgroup, barrier: Mbarrier, lanes: Any = None, release: str = "cta"
    ) -> None:
        mask = self.lanes(wg, lanes)
        site = self.site("mbarrier.arrive.shared::cta.b64")
        self.observer.barrier_used(wg, mask, barrier, site)
        self.observer.counted(wg, mask, mask, barrier, site)
        self.observer.arrived(wg, mask, barrier, release, site)
        count = wg.lanes if mask is None else int(mask.sum())
        barrier.arrive(count, wg.describe(mask))

    def wait(
        self,
        wg: Warpgroup,
        barrier: Mbarrier,
        lanes: Any = None,
        acquire: str = "cta",
        phase: int | None = None,
    ) -> None:
        mask = self.lanes(wg, lanes)
        site = self.site("mbarrier.try_wait.parity.shared::cta.b64")
        self.observer.barrier_used(wg, mask, barrier, site)
        seen = barrier.phase - 1 if phase is None else phase
        self.observer.waited(wg, mask, barrier, seen, acquire, site)

    # ---- asynchronous operations

    def operation(
        self,
        wg: Warpgroup,
        kind: str = "bulk copy",
        lane: int = 0,
        reads: Any = (),
        writes: Any = (),
        **more: Any,
    ) -> AsyncOp:
        """Ranges are (start, stop) of the CTA's own shared memory, or range objects."""

        def ranges(values: Any) -> tuple[Any, ...]:
            return tuple(
                SharedRange(wg.cta, *value) if isinstance(value, tuple) else value
                for value in values
            )

        site = self.site(f"{kind.replace(' ', '_')}.async")
        op = AsyncOp(
            kind, wg, lane, site, lambda: None, reads=ranges(reads), writes=ranges(writes), **more
        )
        self.machine.submit(op)
        return op

    def land(self, op: AsyncOp, barrier: Mbarrier, count: int) -> None:
        """The operation completes and its bytes are counted."""
        self.machine.complete(op)
        barrier.signal_transaction(op, count)

    def load(
        self, wg: Warpgroup, barrier: Mbarrier, start: int, stop: int, lane: int = 0
    ) -> AsyncOp:
        """Expect and issue a copy into shared memory."""
        barrier.expect(stop - start)
        return self.operation(wg, lane=lane, writes=[(start, stop)])

    def observed(
        self, wg: Warpgroup, *ops: AsyncOp, lanes: Any = None, kind: str = "complete"
    ) -> None:
        for op in ops:
            self.machine.complete(op)
        self.observer.observed(wg, self.lanes(wg, lanes), list(ops), kind)

    # ---- what was found

    def found(self) -> list[tuple[str, str]]:
        """Kind and severity of all findings."""
        return [(one.kind, one.severity.value) for one in self.machine.log.findings()]

    def text(self) -> str:
        return "\n".join(str(one) for one in self.machine.log.findings())
