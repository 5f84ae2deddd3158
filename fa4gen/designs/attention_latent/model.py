"""The plan of a latent kernel, in addition to that of any decode kernel."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.counts import counted
from fa4gen.designs.attention_latent.memory import LatentMemory
from fa4gen.designs.common.model import NamedBarriers, Role
from fa4gen.designs.common.roles import WARPGROUP_WARPS
from fa4gen.overriding import override


@dataclass(frozen=True, kw_only=True)
class LatentAttentionPlan(LatentMemory):
    """Attention forward of packed heads whose values are the first columns of the keys."""

    RECORDED = (
        *LatentMemory.RECORDED, "half_panels", "half_parts", "line_bytes", "line_sums_bytes",
        "producer_registers", "consumer_registers",
    )  # fmt: skip

    ring_is_loaders: bool = True
    quads_at_once: int = 1
    """The output has nearly all registers."""

    @property
    @override
    def named_barriers(self) -> NamedBarriers:
        of_line = self.has_tile_lengths or not self.split_blocks
        second = "line_barrier" if of_line else "ready_barrier"
        return (("consumer_barrier", 1), (second, 2), ("scores_barrier", 3))

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        warps = self.num_consumer_warps
        work = (
            "each warpgroup Q.K and softmax of every other block, and P.V of all blocks for "
            f"{self.value_depth // 2} columns"
        )
        loads = f"one {'warp' if self.clipped_tensors else 'thread'} issues all TMA loads"
        return (
            Role("consume", 0, warps, self.consumer_registers, work),
            Role("load", warps, WARPGROUP_WARPS, self.producer_registers, loads),
        )

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        pairs = "pairs of CTAs: where tiles of a key head are paired, both load its keys for both"
        return (
            self.types_line,
            f"packed heads: tiles of {self.packed_rows} rows of a key head x {self.BN} keys, "
            f"{counted(self.num_parts, 'consumer warpgroup')}, {self.stages}",
            *([pairs] if self.cluster == 2 else []),
            self.split_line,
            *self.feature_lines,
        )

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """The columns of scores, and of a warpgroup's half of the output that arrives together."""
        return self.part_keys, self.value_depth // self.num_parts // self.half_parts
