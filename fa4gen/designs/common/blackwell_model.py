"""The plan of attention with tensor memory, as both designs have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.designs.common.kernel_model import TensorMemoryPlan

if TYPE_CHECKING:
    from fa4gen.designs.common.model import TensorMemoryRegion


@dataclass(frozen=True, kw_only=True)
class BlackwellAttentionPlan(TensorMemoryPlan, AttentionPlan):
    """The common part of both attention plans with tensor memory."""

    BK0: int
    """Columns of query and key that one stage of Q.K multiplies."""
    BK1: int
    """Keys that one P.V multiplies: of a block, or of a slot."""
    num_qk_stages: int
    num_pv_stages: int
    out_panel_columns: int
    probability_shift: int
    """Probabilities are scaled by 2 to this power, which uses the range of fp8; else 0."""
    exp2_fma_share: float
    registers_at_entry: int
    """Per thread, before setmaxnreg."""
    softmax_registers: int
    correction_registers: int
    other_registers: int
    tensor_memory: tuple[TensorMemoryRegion, ...]
    tensor_memory_columns: int
    """Columns to allocate: a power of two."""

    @property
    def probability_scale_log2(self) -> int:
        """See ``probability_shift``."""
        return self.probability_shift

    @property
    def has_exp2_polynomial(self) -> bool:
        """Whether the FMA pipe has a share of the exponentials."""
        return self.exp2_fma_share > 0

    @property
    def votes_on_rescaling(self) -> bool:
        """Whether warps vote: they do whatever the threshold."""
        return True

    @property
    def fma_keys(self) -> int:
        """The keys of every 16, the last ones, whose exponentials the FMA pipe computes."""
        return round(16 * self.exp2_fma_share)

    @property
    def packed_registers(self) -> int:
        """Registers of a row's probabilities of 32 keys."""
        return 32 * self.element_bytes // 4
