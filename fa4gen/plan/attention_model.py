"""The plan of an attention kernel: see ``model`` for its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.plan.model import (
        Barrier,
        Choice,
        LaunchGeometry,
        Parameter,
        Role,
        SharedRegion,
        TensorMapPlan,
    )


@dataclass(frozen=True)
class AttentionPlan:
    """Everything that follows from an attention config for sm_90a."""

    kernel: str
    name: str
    entry_point: str
    arch: str
    feature_macro: str
    """Defined by the compilers only for exactly this architecture."""
    dtype: str
    element_bytes: int
    depth: int
    mask: str
    """"none", "causal" or "sliding_window"."""
    window_left: int | None
    """Keys visible left of the diagonal; None is unbounded."""
    window_right: int | None
    lse: bool
    softcap: float | None
    cta_group: int
    BM: int
    BN: int
    num_consumer_warpgroups: int
    num_kv_stages: int
    overlap: bool
    num_pv_chunks_in_flight: int
    ping_pong: bool
    overlap_epilogue: bool
    epilogue: str
    scheduler: str
    rescale_threshold: float
    mixed_tile_heights: bool
    """Some tiles leave the last warpgroup out, to even out the waves of CTAs."""
    panel_columns: int
    """Columns of a swizzled panel: 64 (128B swizzle), or 32 (64B) for a depth like 96."""
    num_panels: int
    producer_registers: int
    consumer_registers: int
    named_barriers: tuple[tuple[str, int], ...]
    """Constants of the hardware's named barriers: name and first id."""
    summary: tuple[str, ...]
    """The resolved parameters in words, for the head of the generated file."""
    roles: tuple[Role, ...]
    shared: tuple[SharedRegion, ...]
    barriers: tuple[Barrier, ...]
    tensor_maps: tuple[TensorMapPlan, ...]
    parameters: tuple[Parameter, ...]
    launch: LaunchGeometry
    choices: tuple[Choice, ...]

    def region(self, name: str) -> SharedRegion:
        """Return the shared-memory region called ``name``; KeyError when there is none."""
        return {region.name: region for region in self.shared}[name]

    def barrier(self, name: str) -> Barrier:
        """Return the row of the barrier table called ``name``; KeyError when there is none."""
        return {barrier.name: barrier for barrier in self.barriers}[name]

    @property
    def shared_bytes_used(self) -> int:
        """Bytes up to the end of the last region, before the alignment slack."""
        return max(region.end for region in self.shared)


Plan = AttentionPlan
"""Any plan. Further families join this union."""
