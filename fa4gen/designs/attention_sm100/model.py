"""The plan of an attention kernel on Blackwell, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from fa4gen.designs.common.blackwell_model import BlackwellAttentionPlan

if TYPE_CHECKING:
    from fa4gen.designs.common.model import TensorMemoryRegion


@dataclass(frozen=True, kw_only=True)
class FA4Config(BlackwellAttentionPlan):
    """Attention forward by tcgen05, accumulators in tensor memory (sm_100a, sm_103a).

    The name and the words in it are those of the systems that it follows.
    """

    num_qo: int
    """Query tiles of 128 rows that a CTA works on at once: 2, or 1 with two score buffers."""
    padded_depth: int
    """Depth of a query and key slot: whole swizzled panels."""
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

    @property
    def num_query_tiles(self) -> int:
        """See ``num_qo``."""
        return self.num_qo

    @property
    def part_rows(self) -> int:
        """See AttentionPlan: a query tile."""
        return self.BM // self.num_qo

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
