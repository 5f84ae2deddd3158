"""The plan of a decode kernel, in addition to that of any with shares of the keys."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from fa4gen.designs.common.decode_model import SharedKeysPlan
from fa4gen.designs.common.unreachable import Unreachable
from fa4gen.overriding import override

_OF: Final[dict[str, frozenset[str]]] = {
    "key": frozenset({"first_key", "column"}),
    "row": frozenset({"query"}),
    "query": frozenset({"n"}),
    "terms": frozenset({"n"}),
}
"""The names that names of a score's place are made of, each after those that need it."""
_WORD = re.compile(r"(?<![.\w])[a-z_]\w*")


@dataclass(frozen=True, kw_only=True)
class DecodeAttentionPlan(SharedKeysPlan):
    """Attention forward of packed heads, with shares of the keys: by mma.sync, or wgmma."""

    query_in_shared: bool
    """Whether products read the query from shared memory."""

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
        return 1 if self.page_size is None else max(1, self.part_keys // self.page_size)

    @property
    def has_two_chains(self) -> bool:
        """Whether the steps of Q.K add to two sums in turn: one product alone would wait."""
        return self.part_keys // 16 * (self.packed_rows // 8) <= 2
