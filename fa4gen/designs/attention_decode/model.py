"""The plan of a decode kernel, in addition to that of any with shares of the keys."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from fa4gen.counts import counted
from fa4gen.designs.attention_decode.memory import DecodeMemory
from fa4gen.designs.common.decode_parameters import PROMOTION
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.tensor_maps import operand_maps
from fa4gen.designs.common.unreachable import Unreachable
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import NamedBarriers, TensorMapPlan
    from fa4gen.designs.common.tensor_maps import Tensor

NARROW_PROMOTION: Final = 64
"""The L2 promotion, in bytes, where a row has fewer bytes."""
_OF: Final[dict[str, frozenset[str]]] = {
    "key": frozenset({"first_key", "column"}),
    "row": frozenset({"query"}),
    "query": frozenset({"n"}),
    "terms": frozenset({"n"}),
}
"""The names that names of a score's place are made of, each after those that need it."""
_WORD = re.compile(r"(?<![.\w])[a-z_]\w*")


@dataclass(frozen=True, kw_only=True)
class DecodeAttentionPlan(DecodeMemory):
    """Attention forward of packed heads, with shares of the keys: by mma.sync, or wgmma."""

    RECORDED = (*DecodeMemory.RECORDED, "query_in_shared")

    @property
    @override
    def named_barriers(self) -> NamedBarriers:
        if self.has_tile_lengths:
            return (("consumer_barrier", 1),)
        return ("consumer_barrier", 1), ("ready_barrier", 2)

    @property
    @override
    def roles(self) -> tuple[Role, ...]:
        warps = self.num_consumer_warps
        work = (
            f"each {self.part_words} does Q.K, softmax and P.V of {self.part_keys} keys of a "
            "block; then they join their outputs"
        )
        return (
            Role("consume", 0, warps, self.registers, work),
            Role("load", warps, 1, self.registers, "issues all TMA loads"),
        )

    @property
    @override
    def tensor_maps(self) -> tuple[TensorMapPlan, ...]:
        # K and V: a box is a unit, or of clipped rows a panel of what is in one place.
        rows = self.key_source.box_rows(self.unit_keys)
        boxes: dict[Tensor, tuple[int, int]] = {
            "key": (rows, self.num_panels),
            "value": (rows, self.num_panels),
        }
        clipped = self.clipped_tensors
        maps = operand_maps(boxes, self.panel_columns, self.kv_element_bytes, clipped)
        row_bytes = self.depth * self.kv_element_bytes
        promotion: Literal[64, 128] = PROMOTION if row_bytes >= PROMOTION else NARROW_PROMOTION
        return tuple(replace(row, l2_promotion=promotion) for row in maps)

    @property
    @override
    def summary(self) -> tuple[str, ...]:
        types = self.dtype
        if self.has_descales:
            types += f", keys and values {self.kv_dtype}"
        if self.has_page_scales:
            types += " with a scale for each page and key head"
        return (
            f"{types}, sums in float32; depth {self.depth}; mask {self.mask.words}",
            f"packed heads: tiles of {self.packed_rows} rows of a key head x {self.BN} keys, "
            f"{counted(self.num_consumer_warps, 'consumer warp')}, {self.stages}",
            self.split_line,
            *self.feature_lines,
        )

    @property
    @override
    def unreachable(self) -> tuple[Unreachable, ...]:
        if not self.is_wide or self.num_parts > 1:
            return super().unreachable
        reason = "the only part has keys in each block"
        skips = Unreachable("Consumer::process_units", "part / kUnitParts >= end", reason)
        return (*super().unreachable, skips)

    @property
    def score_words(self) -> frozenset[str]:
        """The names in the C++ of an expression score, and the names that those are made of."""
        if not self.score.IS_EXPRESSION:
            return frozenset()
        words = set(_WORD.findall(self.score_text.text))
        for one, others in _OF.items():
            words |= others if one in words else frozenset()
        return frozenset(words)

    @property
    def needs_queries(self) -> bool:
        """Whether a lane keeps the positions of its rows."""
        tested = "{query}" in (self.mask.TEST or "")
        return tested or "query" in self.score_words

    @property
    def needs_diagonal(self) -> bool:
        """Whether a lane keeps the position of the first query row."""
        return "diagonal" in (self.mask.TEST or "") or "row" in self.score_words

    @property
    def wgmma_columns(self) -> tuple[int, ...]:
        """The columns of the products of keys and of values, if they are by wgmma."""
        return tuple(sorted({self.part_keys, self.value_depth})) if self.is_wide else ()

    @property
    def part_pages(self) -> int:
        """Pages of the keys of a block that a warp takes; 1 where keys are in none."""
        return max(1, self.part_keys // self.key_source.page_rows) if self.is_paged else 1

    @property
    def has_two_chains(self) -> bool:
        """Whether the steps of Q.K add to two sums in turn: one product alone would wait."""
        return self.part_keys // 16 * (self.packed_rows // 8) <= 2
