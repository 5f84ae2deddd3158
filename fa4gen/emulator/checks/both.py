"""Two observers side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from fa4gen.emulator.state.observer import Observer

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.async_ops import AsyncOp, TensorRange
    from fa4gen.emulator.state.gang import Gang, Mask
    from fa4gen.emulator.state.machine import Cluster, Cta
    from fa4gen.emulator.state.mbarriers import Mbarrier


class Both(Observer):
    """Tells two observers everything; what is returned comes from the first."""

    enabled = True

    def __init__(self, first: Observer, second: Observer) -> None:
        self._first = first
        self._second = second

    def cluster_starts(self, cluster: Cluster) -> None:
        self._first.cluster_starts(cluster)
        self._second.cluster_starts(cluster)

    def cluster_ends(self, cluster: Cluster) -> None:
        self._first.cluster_ends(cluster)
        self._second.cluster_ends(cluster)

    def launch_ends(self) -> None:
        self._first.launch_ends()
        self._second.launch_ends()

    def lanes_leave(self, gang: Gang, mask: Mask) -> None:
        self._first.lanes_leave(gang, mask)
        self._second.lanes_leave(gang, mask)

    def splits(self, gang: Gang, some: NDArray[Any], rest: NDArray[Any]) -> None:
        self._first.splits(gang, some, rest)
        self._second.splits(gang, some, rest)

    def meets(self, gang: Gang, mask: Mask) -> None:
        self._first.meets(gang, mask)
        self._second.meets(gang, mask)

    def shared_access(
        self,
        gang: Gang,
        mask: Mask,
        cta: Cta,
        offsets: NDArray[Any],
        size: int,
        kind: str,
        site: Instruction,
        values: NDArray[Any] | None = None,
    ) -> None:
        self._first.shared_access(gang, mask, cta, offsets, size, kind, site, values)
        self._second.shared_access(gang, mask, cta, offsets, size, kind, site, values)

    def global_access(
        self,
        gang: Gang,
        mask: Mask,
        addresses: NDArray[Any],
        size: int,
        kind: str,
        site: Instruction,
    ) -> None:
        self._first.global_access(gang, mask, addresses, size, kind, site)
        self._second.global_access(gang, mask, addresses, size, kind, site)

    def issued(self, op: AsyncOp) -> None:
        self._first.issued(op)
        self._second.issued(op)

    def observed(self, gang: Gang, mask: Mask, ops: list[AsyncOp], kind: str) -> None:
        self._first.observed(gang, mask, ops, kind)
        self._second.observed(gang, mask, ops, kind)

    def signalled(self, op: AsyncOp, barrier: Mbarrier) -> None:
        self._first.signalled(op, barrier)
        self._second.signalled(op, barrier)

    def barrier_init(self, gang: Gang, lane: int, barrier: Mbarrier, site: Instruction) -> None:
        self._first.barrier_init(gang, lane, barrier, site)
        self._second.barrier_init(gang, lane, barrier, site)

    def barrier_used(self, gang: Gang, mask: Mask, barrier: Mbarrier, site: Instruction) -> None:
        self._first.barrier_used(gang, mask, barrier, site)
        self._second.barrier_used(gang, mask, barrier, site)

    def arrived(
        self, gang: Gang, mask: Mask, barrier: Mbarrier, release: str, site: Instruction
    ) -> None:
        self._first.arrived(gang, mask, barrier, release, site)
        self._second.arrived(gang, mask, barrier, release, site)

    def phase_completed(self, barrier: Mbarrier) -> None:
        self._first.phase_completed(barrier)
        self._second.phase_completed(barrier)

    def waited(
        self,
        gang: Gang,
        mask: Mask,
        barrier: Mbarrier,
        phase: int,
        acquire: str,
        site: Instruction,
    ) -> None:
        self._first.waited(gang, mask, barrier, phase, acquire, site)
        self._second.waited(gang, mask, barrier, phase, acquire, site)

    def rendezvous_arrive(
        self, gang: Gang, mask: Mask, key: Any, release: bool, site: Instruction | None = None
    ) -> None:
        self._first.rendezvous_arrive(gang, mask, key, release, site)
        self._second.rendezvous_arrive(gang, mask, key, release, site)

    def rendezvous_leave(self, gang: Gang, mask: Mask, key: Any, acquire: bool) -> None:
        self._first.rendezvous_leave(gang, mask, key, acquire)
        self._second.rendezvous_leave(gang, mask, key, acquire)

    def rendezvous_reset(self, key: Any) -> None:
        self._first.rendezvous_reset(key)
        self._second.rendezvous_reset(key)

    def warp_sync(self, gang: Gang, mask: Mask, site: Instruction | None = None) -> None:
        self._first.warp_sync(gang, mask, site)
        self._second.warp_sync(gang, mask, site)

    def fence(self, gang: Gang, mask: Mask, kind: str, site: Instruction) -> None:
        self._first.fence(gang, mask, kind, site)
        self._second.fence(gang, mask, kind, site)

    def atomic_sync(
        self,
        gang: Gang,
        mask: Mask,
        addresses: NDArray[Any],
        order: str,
        scope: str,
        reads: bool,
        writes: bool,
        site: Instruction,
    ) -> None:
        self._first.atomic_sync(gang, mask, addresses, order, scope, reads, writes, site)
        self._second.atomic_sync(gang, mask, addresses, order, scope, reads, writes, site)

    def tensor_access(
        self, gang: Gang, mask: Mask, ranges: list[TensorRange], kind: str, site: Instruction
    ) -> Any:
        token = self._first.tensor_access(gang, mask, ranges, kind, site)
        self._second.tensor_access(gang, mask, ranges, kind, site)
        return token

    def tensor_waited(self, gang: Gang, mask: Mask, kind: str) -> None:
        self._first.tensor_waited(gang, mask, kind)
        self._second.tensor_waited(gang, mask, kind)

    def tensor_allocated(self, cta: Cta, first_column: int, columns: int) -> None:
        self._first.tensor_allocated(cta, first_column, columns)
        self._second.tensor_allocated(cta, first_column, columns)

    def pair_allocated(self, gang: Gang, mask: Mask, number: int) -> None:
        self._first.pair_allocated(gang, mask, number)
        self._second.pair_allocated(gang, mask, number)

    def pair_freed(self, gang: Gang, mask: Mask, peer: Cta, number: int, site: Instruction) -> None:
        self._first.pair_freed(gang, mask, peer, number, site)
        self._second.pair_freed(gang, mask, peer, number, site)

    def map_changed(
        self, gang: Gang, mask: Mask, address: int, released: bool, site: Instruction
    ) -> None:
        self._first.map_changed(gang, mask, address, released, site)
        self._second.map_changed(gang, mask, address, released, site)

    def map_acquired(self, gang: Gang, mask: Mask, addresses: Any) -> None:
        self._first.map_acquired(gang, mask, addresses)
        self._second.map_acquired(gang, mask, addresses)

    def grid_waited(self, gang: Gang, mask: Mask) -> None:
        self._first.grid_waited(gang, mask)
        self._second.grid_waited(gang, mask)
