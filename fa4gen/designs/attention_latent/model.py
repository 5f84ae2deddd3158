"""The plan of a latent kernel, in addition to that of any decode kernel."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.designs.common.decode_model import SharedKeysPlan
from fa4gen.overriding import override


@dataclass(frozen=True, kw_only=True)
class LatentAttentionPlan(SharedKeysPlan):
    """Attention forward of packed heads whose values are the first columns of the keys."""

    half_panels: int
    """Panels of the left values of a block, or of the right ones: a warpgroup's."""
    half_parts: int
    """Barriers that they arrive on."""
    line_bytes: int
    """The bytes of the line of the sequences, in the query's place before the first one."""
    line_sums_bytes: int
    producer_registers: int
    consumer_registers: int

    @property
    @override
    def values_in_keys(self) -> bool:
        return True

    @property
    @override
    def ring_is_loaders(self) -> bool:
        return True

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """The columns of scores, and of a warpgroup's half of the output that arrives together."""
        return self.part_keys, self.value_depth // self.num_parts // self.half_parts

    @property
    def quads_at_once(self) -> int:
        """One: the output has nearly all registers."""
        return 1
