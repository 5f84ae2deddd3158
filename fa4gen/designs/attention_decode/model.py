"""What the plan of a decode kernel has beside that of any with shares of the keys."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.designs.shared.decode_model import SharedKeysPlan


@dataclass(frozen=True, kw_only=True)
class DecodeAttentionPlan(SharedKeysPlan):
    """Attention forward of packed heads, with shares of the keys: by mma.sync, or wgmma."""

    query_in_shared: bool
    """Whether products read the query from shared memory."""

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """Of the products of keys and of values, where they are by wgmma."""
        return tuple(sorted({self.part_keys, self.value_depth})) if self.is_wide else ()

    @property
    def part_pages(self) -> int:
        """Pages of the keys of a block that a warp takes; 1 where keys are in none."""
        return 1 if self.page_size is None else max(1, self.part_keys // self.page_size)

    @property
    def has_two_chains(self) -> bool:
        """Whether the steps of Q.K add to two sums in turn: one product alone would wait."""
        return self.part_keys // 16 * (self.packed_rows // 8) <= 2
