"""The plan of an attention kernel of depth 512 on Blackwell, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.designs.common.blackwell_model import BlackwellAttentionPlan


@dataclass(frozen=True, kw_only=True)
class Depth512Config(BlackwellAttentionPlan):
    """Attention forward at depth 512 by tcgen05 over a pair of CTAs (sm_100a, sm_103a)."""

    staging_step: int
    """Bytes from the staging space of the output's first half to that of its second; 0 where they
    take turns."""

    @property
    def barriers_by_warp(self) -> bool:
        """Whether a warp initialises the barriers: the struct that holds them does it so."""
        return True

    @property
    def row_keys(self) -> int:
        """Keys of a block whose scores a softmax thread holds: two threads share a row."""
        return self.BN // 2

    @property
    def half_columns(self) -> int:
        """Columns of each half of the output."""
        return self.value_depth // 2

    @property
    def lane_columns(self) -> int:
        """Columns of a half of the output in one lane: half a row of it."""
        return self.value_depth // 4
