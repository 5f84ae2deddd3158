"""The events of a launch, which checks and timeline observe. The base class ignores them.

The machine and the instruction families call these methods at the moment something happens. An
observer may keep vector clocks, shadow memory and histories; it reports through
``machine.find(...)``.

``offsets`` are byte offsets into the shared memory of ``cta`` (not addresses), one per lane of
``mask`` in ascending lane order; ``size`` is the number of bytes at each. Global ``addresses``
likewise. ``kind`` is ``read``, ``write`` or ``atomic``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from numpy.typing import NDArray

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.registers import Mask

WarpgroupT = TypeVar("WarpgroupT")
CtaT = TypeVar("CtaT")
ClusterT = TypeVar("ClusterT")
OperationT = TypeVar("OperationT")
BarrierT = TypeVar("BarrierT")
TensorRangeT = TypeVar("TensorRangeT")


class Events(Generic[WarpgroupT, CtaT, ClusterT, OperationT, BarrierT, TensorRangeT]):
    """Sees every access and every synchronisation; this one ignores them all."""

    enabled = False
    """False spares the callers the work of preparing the arguments."""

    # ---- lifetime

    def cluster_starts(self, cluster: ClusterT) -> None:
        """A cluster's CTAs begin; nothing of it has run yet."""

    def cluster_ends(self, cluster: ClusterT) -> None:
        """All threads of a cluster have left."""

    def launch_ends(self) -> None:
        """All threads of the launch have left, nothing is under way any more."""

    def lanes_leave(self, wg: WarpgroupT, mask: Mask) -> None:
        """Threads leave the kernel."""

    def diverged(self, wg: WarpgroupT, some: NDArray[Any], rest: NDArray[Any]) -> None:
        """Lanes that stood together go two paths; both are masks of the warpgroup's lanes."""

    def converged(self, wg: WarpgroupT, mask: Mask) -> None:
        """Lanes execute an instruction of whole warps while some warp of ``wg`` is diverged."""

    # ---- generic accesses

    def shared_access(
        self,
        wg: WarpgroupT,
        mask: Mask,
        cta: CtaT,
        offsets: NDArray[Any],
        size: int,
        kind: str,
        site: Instruction,
        values: NDArray[Any] | None = None,
    ) -> None:
        """Threads access the shared memory of ``cta``: their own CTA or a peer of the cluster.

        ``values`` are the bytes that a write is about to store, uint8, shape (accesses, size), and
        are reported before: threads that store the bytes already there do no harm.
        """

    def global_access(
        self,
        wg: WarpgroupT,
        mask: Mask,
        addresses: NDArray[Any],
        size: int,
        kind: str,
        site: Instruction,
        values: NDArray[Any] | None = None,
    ) -> None:
        """Threads access global memory; ``values`` as for ``shared_access``."""

    # ---- asynchronous operations

    def issued(self, op: OperationT) -> None:
        """An operation was issued; its interval of accesses begins here."""

    def observed(self, wg: WarpgroupT, mask: Mask, ops: list[OperationT], kind: str) -> None:
        """Threads waited for operations of their own.

        ``kind`` is ``complete``, or ``read`` where only the sources are known to have been read.
        """

    def signalled(self, op: OperationT, barrier: BarrierT) -> None:
        """An operation's completion arrives at an mbarrier (transaction bytes or a commit)."""

    def warpgroup_meets(self, wg: WarpgroupT) -> None:
        """All warps have come to the first ``wgmma`` after a ``wgmma.fence``."""

    # ---- barriers

    def barrier_init(self, wg: WarpgroupT, lane: int, barrier: BarrierT, site: Instruction) -> None:
        """An mbarrier was initialised by a thread."""

    def barrier_used(
        self, wg: WarpgroupT, mask: Mask, barrier: BarrierT, site: Instruction
    ) -> None:
        """Threads use an mbarrier in any way other than init (arrive, expect, wait)."""

    def counted(
        self, wg: WarpgroupT, mask: Mask, together: Mask, barrier: BarrierT, site: Instruction
    ) -> None:
        """Arrivals of threads, or bytes that they expect or complete, are about to count.

        They are some of the threads ``together`` that execute the instruction, which count at
        other barriers; called before any of them does.
        """

    def arrived(
        self, wg: WarpgroupT, mask: Mask, barrier: BarrierT, release: str, site: Instruction
    ) -> None:
        """Threads arrive; ``release`` is ``cta``, ``cluster`` or ``none`` (relaxed).

        Called before the arrivals are counted, so before a phase that they complete.
        """

    def phase_completed(self, barrier: BarrierT) -> None:
        """A phase of an mbarrier has just completed; ``barrier.phase`` is already the next."""

    def waited(
        self,
        wg: WarpgroupT,
        mask: Mask,
        barrier: BarrierT,
        phase: int,
        acquire: str,
        site: Instruction,
    ) -> None:
        """Threads saw ``phase`` complete; ``acquire`` is ``cta``, ``cluster`` or ``none``."""

    def blocked(self, wg: WarpgroupT, mask: Mask, barrier: BarrierT, site: Instruction) -> None:
        """Threads that wait by parity have to wait for the phase under way."""

    def rendezvous_arrive(
        self, wg: WarpgroupT, mask: Mask, key: Any, release: bool, site: Instruction | None = None
    ) -> None:
        """Threads arrive at a named barrier, cluster barrier or warp barrier called ``key``.

        ``site`` is given for named barriers and cluster barriers.
        """

    def rendezvous_leave(self, wg: WarpgroupT, mask: Mask, key: Any, acquire: bool) -> None:
        """Threads are let through by the barrier ``key``, which everyone has reached."""

    def rendezvous_reset(self, key: Any) -> None:
        """Everyone has reached ``key``; arrivals after this belong to its next use."""

    def warp_sync(self, wg: WarpgroupT, mask: Mask, site: Instruction | None = None) -> None:
        """``bar.warp.sync``: lanes synchronise, those of each warp among themselves.

        One call may cover several warps.
        """

    # ---- fences

    def fence(self, wg: WarpgroupT, mask: Mask, kind: str, site: Instruction) -> None:
        """A fence: ``kind`` is the opcode without operands, e.g. ``fence.proxy.async``."""

    def atomic_sync(
        self,
        wg: WarpgroupT,
        mask: Mask,
        addresses: NDArray[Any],
        order: str,
        scope: str,
        reads: bool,
        writes: bool,
        site: Instruction,
    ) -> None:
        """Threads synchronise through memory: an atomic, or a load or store with an order.

        ``order`` is relaxed, acquire, release or acq_rel, at ``scope``.
        """

    # ---- tensor memory

    def tensor_access(
        self, wg: WarpgroupT, mask: Mask, ranges: list[TensorRangeT], kind: str, site: Instruction
    ) -> Any:
        """A warp loads from or stores to tensor memory; returns a token for ``tensor_waited``."""

    def tensor_waited(self, wg: WarpgroupT, mask: Mask, kind: str) -> None:
        """``tcgen05.wait::ld`` (kind ``read``) or ``::st`` (kind ``write``)."""

    def tensor_allocated(self, cta: CtaT, first_column: int, columns: int) -> None:
        """Columns of tensor memory were handed out; their cells are uninitialised."""

    def pair_allocated(self, wg: WarpgroupT, mask: Mask, number: int) -> None:
        """A CTA of a pair made its allocation ``number``."""

    def pair_freed(
        self, wg: WarpgroupT, mask: Mask, peer: CtaT, number: int, site: Instruction
    ) -> None:
        """A CTA of a pair frees allocation ``number``; ``peer`` has made its own."""

    # ---- tensor maps, and the grid before

    def map_changed(
        self, wg: WarpgroupT, mask: Mask, address: int, released: bool, site: Instruction
    ) -> None:
        """A lane changes a tensor map in global memory, and releases it or not."""

    def map_acquired(self, wg: WarpgroupT, mask: Mask, addresses: Any) -> None:
        """``fence.proxy.tensormap::generic.acquire``: an address per lane, or one for all."""

    def grid_waited(self, wg: WarpgroupT, mask: Mask) -> None:
        """``griddepcontrol.wait``."""
