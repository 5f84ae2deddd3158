"""What the plan of an attention kernel on Hopper has beside that of any."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.designs.shared.attention_model import AttentionPlan


@dataclass(frozen=True, kw_only=True)
class HopperAttentionPlan(AttentionPlan):
    """Attention forward by wgmma, accumulators in registers (sm_90a)."""

    num_consumer_warpgroups: int
    overlap: bool
    num_pv_chunks_in_flight: int
    ping_pong: bool
    overlap_epilogue: bool
    producer_registers: int
    consumer_registers: int

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """Columns of the sums of each kind of wgmma: scores and output."""
        return tuple(dict.fromkeys((self.BN, self.value_depth)))
