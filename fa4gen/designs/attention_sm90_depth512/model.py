"""The plan of an attention kernel of depth 512 on Hopper, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.designs.common.attention_model import AttentionPlan


@dataclass(frozen=True, kw_only=True)
class HopperPairAttentionPlan(AttentionPlan):
    """Attention forward by wgmma, one tile of query rows computed by a pair of CTAs (sm_90a)."""

    num_consumer_warpgroups: int
    own_keys: int
    """Keys of a block whose scores a CTA computes."""
    own_columns: int
    """Columns of value and output that a CTA holds."""
    producer_registers: int
    consumer_registers: int

    @property
    def ctas_per_tile(self) -> int:
        """Both CTAs of the pair."""
        return self.cta_group

    @property
    def aligns_base(self) -> bool:
        """There is no room: the declaration asks for the alignment."""
        return False

    @property
    def reads_along_keys(self) -> bool:
        """Whether a declared tensor is empty without keys: a block past them may be walked."""
        return any("keys" in tensor.shape for tensor in self.declared_tensors)

    @property
    def own_chunks(self) -> int:
        """Chunks of P.V, 16 keys each, whose probabilities a CTA computes itself."""
        return self.own_keys // 16

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """Columns of the sums of each kind of wgmma: scores and output."""
        return tuple(dict.fromkeys((self.own_keys, self.own_columns)))
