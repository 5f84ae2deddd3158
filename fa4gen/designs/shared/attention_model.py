"""The plan of an attention kernel: see ``model`` for its parts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from fa4gen.designs.shared.kernel_model import KernelPlan, TensorMemoryPlan

if TYPE_CHECKING:
    from fa4gen.designs.shared.model import TensorMemoryRegion
    from fa4gen.masks.mask import Mask
    from fa4gen.scores.score import Score


@dataclass(frozen=True, kw_only=True)
class AttentionPlan(KernelPlan):
    """What follows from any attention config: all that launcher, verify and reports read.

    ``dtype`` is that of query, key and value.
    """

    depth: int
    """Columns of query and key."""
    value_depth: int
    """Columns of value and output."""
    mask: Mask
    """Which keys a query row sees."""
    lse: bool
    score: Score
    """What becomes of logits before the mask."""
    has_descales: bool
    """Query, key and value come with a scale for each batch and key head (fp8)."""
    BM: int
    """Query rows of a CTA's tile."""
    BN: int
    """Keys of a block."""
    num_kv_stages: int
    epilogue: str
    rescale_threshold: float
    mixed_tile_heights: bool
    """Some tiles leave the last warpgroup out, to even out the waves of CTAs."""
    panel_columns: int
    """Columns of a swizzled panel of queries and keys: as many as tile the depth."""
    num_panels: int

    @property
    def ctas_per_tile(self) -> int:
        """CTAs that work on the same query rows: 1, also where a pair shares no more than keys."""
        return 1

    @property
    def operation(self) -> str:
        """What the kernel computes, in a line."""
        return "attention forward, O = softmax(scale * Q . K^T) . V"

    @property
    def num_query_tiles(self) -> int:
        """Query tiles that a CTA works on at once, each with rows and scores of its own."""
        return 1

    @property
    def probability_scale_log2(self) -> int:
        """Probabilities are scaled by 2 to this power before they are rounded."""
        return 0

    @property
    def has_exp2_polynomial(self) -> bool:
        """Whether a polynomial computes some of the exponentials, not ex2."""
        return False

    @property
    def votes_on_rescaling(self) -> bool:
        """Whether warps vote on rescaling their rows; else they do at every block."""
        return self.rescale_threshold > 0

    @property
    def tiles_per_cluster(self) -> int:
        """Tiles of query rows that the CTAs of a cluster work on at once."""
        return self.cta_group // self.ctas_per_tile


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
    def own_chunks(self) -> int:
        """Chunks of P.V, 16 keys each, whose probabilities a CTA computes itself."""
        return self.own_keys // 16


class BlackwellAttentionPlan(TensorMemoryPlan, AttentionPlan):
    """What both attention plans with tensor memory have; each orders its own fields."""

    num_qk_stages: int
    num_pv_stages: int
    out_panel_columns: int
    probability_shift: int
    """Probabilities are scaled by 2 to this power, which uses the range of fp8; else 0."""
    exp2_fma_share: float

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
        """Of every 16 keys, those whose exponentials the FMA pipe computes: the last ones."""
        return round(16 * self.exp2_fma_share)

    @property
    def packed_registers(self) -> int:
        """Registers of a row's probabilities of 32 keys."""
        return 32 * self.element_bytes // 4


@dataclass(frozen=True, kw_only=True)
class FA4Config(BlackwellAttentionPlan):
    """Attention forward by tcgen05, accumulators in tensor memory (sm_100a, sm_103a).

    The name and the words in it are those of the systems that it follows.
    """

    num_qo: int
    """Query tiles of 128 rows that a CTA works on at once: 2, or 1 with two score buffers."""
    BK0: int
    """Columns of query and key that one stage of Q.K multiplies."""
    BK1: int
    """Keys that one block of P.V multiplies."""
    padded_depth: int
    """Depth of a query and key slot: whole swizzled panels."""
    num_qk_stages: int
    num_pv_stages: int
    pv_parts: tuple[int, ...]
    """Keys of each part of P, in the order they are handed over; their sum is BN."""
    kv_ring: str
    """"separate" or "fused"."""
    output_staging: str
    """"query" or "own"."""
    mma_k: int
    """Columns of query and key, or keys, of one MMA instruction: 32 bytes of them."""
    value_panel_columns: int
    """Columns of a swizzled panel of values."""
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
    def num_query_tiles(self) -> int:
        """See ``num_qo``."""
        return self.num_qo

    @property
    def score_stages(self) -> int:
        """Buffers of scores of a query tile."""
        return 2 // self.num_qo

    @property
    def pv_ranges(self) -> tuple[tuple[int, int], ...]:
        """First key and end of each part of P."""
        ends = tuple(accumulate(self.pv_parts))
        return tuple(zip((0, *ends), ends, strict=False))

    def columns(self, name: str) -> TensorMemoryRegion:
        """Return the tensor-memory region called ``name``; KeyError when there is none."""
        return {region.name: region for region in self.tensor_memory}[name]

    def probability_column(self, key: int) -> int:
        """Return the columns of tensor memory that the probabilities before ``key`` take."""
        return key * self.element_bytes // 4


@dataclass(frozen=True, kw_only=True)
class Depth512Config(BlackwellAttentionPlan):
    """Attention forward at depth 512 by tcgen05 over a pair of CTAs (sm_100a, sm_103a)."""

    BK0: int
    """Columns of query and key that one slot's Q.K multiplies."""
    BK1: int
    """Keys that one slot's P.V multiplies."""
    num_qk_stages: int
    num_pv_stages: int
    out_panel_columns: int
    staging_step: int
    """Bytes from the staging space of the output's first half to that of its second; 0 where they
    take turns."""
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
    def barriers_by_warp(self) -> bool:
        """As the struct that holds them does it."""
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


AnyAttentionPlan = HopperAttentionPlan | HopperPairAttentionPlan | FA4Config | Depth512Config
"""Any plan of attention."""
