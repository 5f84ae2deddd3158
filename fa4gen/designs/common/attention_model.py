"""The plan of all attention kernels: see ``model`` for its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fa4gen.designs.common.attention_facts import AttentionFacts
from fa4gen.designs.common.attention_parameters import given_block_names, tile_list_plan
from fa4gen.designs.common.hardware import GROUP_L2_BYTES
from fa4gen.designs.common.score_text import GIVEN, Names, accessor, given
from fa4gen.expressions.words import FLOOR_DIVIDE, FLOOR_REMAINDER
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.model import TileListPlan
    from fa4gen.designs.common.score_text import ScoreText, Term

LISTED = (
    "blocks of keys that the call's lists do not name are not loaded",
    "an entry says for which rows of its tile no key is tested, or only the ends of a row's keys",
)
"""The lines of ``explain`` about a mask by lists of blocks."""
NAMED = (
    "a launch before turns the call's lists into bits, which each warpgroup walks for its 64 rows",
    "blocks of keys that no list of a tile's rows names are not loaded; order does not matter, and "
    "blocks named twice count once",
)
"""The lines of ``explain`` about blocks that a call names."""
LARGEST_EXPONENTS = {"bf16": 31, "fp16": 28, "fp8_e4m3": 24}
"""By the type of weights, log2 of the exponents (logits times log2(e)) below which equal logits of
a row have finite, equal weights. The rounded maximum is subtracted in an FMA: exponents are off by
half a unit in its last place, at most 64, 8 and 1/2 here; weights have room for 127, 15 and 0.8."""
PAGES_LOGITS = (
    "a value's scale joins the exponent, a logit times log2(e): from 2^23 on it is rounded away",
)
"""The line of ``explain`` about large logits with a scale for each page."""
FLOOR_FUNCTIONS = (FLOOR_DIVIDE, FLOOR_REMAINDER)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class AttentionPlan(AttentionFacts):
    """The plan of an attention kernel: everything that launcher, verify and reports read."""

    values_in_keys: bool = False
    """Whether the values are the first ``value_depth`` columns of the keys, read once."""
    splits_keys: bool = False
    """Whether CTAs share the keys of a tile, whose rows are those of all heads of a key head."""
    most_ctas: int = 0
    """The most CTAs of a launch that share keys."""
    most_sequences: int | None = None
    """The most sequences of a call whose key lengths are read on the device; None: any."""
    ctas_per_tile: int = 1
    """CTAs that work on the same query rows: 1, also where a pair shares no more than keys."""
    num_qo: int = 1
    """Query tiles that a CTA works on at once, each with rows and scores of its own."""
    exp2_fma_share: float = 0.0
    """Share of the exponentials that a polynomial computes, on the FMA pipe, not ex2."""
    part_rows: int = 64
    """Rows of a tile that have a range and a bit of their own in lists of blocks."""

    @property
    @override
    def grid(self) -> str:
        if self.is_pair:
            return "two CTAs a pair of tiles, at most as many as multiprocessors"
        return "as many CTAs as multiprocessors, or tiles where there are fewer"

    @cached_property
    @override
    def tile_list(self) -> TileListPlan | None:
        return tile_list_plan(self.config, self.vendored_as, self.cluster_queries)

    @property
    def swizzle(self) -> str:
        """The swizzle of panels of keys, in words."""
        return f"{self.panel_columns * self.kv_element_bytes}-byte swizzle"

    @property
    def tile_queries(self) -> int:
        """Queries of a CTA's tile, each with a row for every head."""
        return self.BM // self.tile_heads

    @property
    @override
    def explained(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        lines = LISTED if self.lists_blocks else self.mask.explained
        lines = NAMED if self.takes_blocks else lines
        sections = [(f"Mask: {self.mask.words}", lines)] if lines else []
        if self.score.IS_EXPRESSION:
            sections.append((self.score.words[:1].upper() + self.score.words[1:], self._computed))
        if not self.score.FUNCTION:
            sections.append(("Large logits", self._large_logits))
        return tuple(sections)

    @property
    def _large_logits(self) -> tuple[str, ...]:
        """The lines of ``explain`` about the size of logits."""
        if self.has_page_scales:
            return PAGES_LOGITS
        power = LARGEST_EXPONENTS[self.operand_dtype]
        largest = 2.0**power * math.log(2)
        return (
            f"equal logits of a row have equal weights below 2^{power} powers of two (logits of "
            f"about {largest:.1e}); above, outputs may be NaN or wrong",
            "a smaller softmax_scale, smaller queries or keys, or a softcap bring them below",
        )

    @property
    def _computed(self) -> tuple[str, ...]:
        """The lines of ``explain`` about the score function."""
        own = f"{self.score.FACTOR} is {self.score.FACTOR_NOTE}"
        terms = [
            f"once a {self.term_words}: {term.c_type} {term.name} = {term.value}"
            for term in self.terms
        ]
        unit = self.score.unit("softmax_scale")
        return (
            own,
            *terms,
            f"each product of query and key: scores[i] = {self.score_text.text}",
            f"the exponent is scores[i] * {unit} * log2(e), less the maximum",
        )

    @property
    def place_names(self) -> Names:
        """The kernel's names for head, batch and extents, where it computes terms."""
        return Names()

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of a tile for mask and score function, computed once."""
        if not self.mask.tile_names and not self.score.IS_EXPRESSION:
            return ()
        from fa4gen.designs.common.score_terms import terms_of  # few kernels have any

        return terms_of(self.mask, self.score, self.place_names)

    @property
    def terms_read_keys(self) -> bool:
        """Whether they read what is empty where there are no keys."""
        if not self.score.IS_EXPRESSION:
            return False
        from fa4gen.designs.common.score_terms import reads_keys  # as in ``terms``

        return reads_keys(self.score, self.declared_tensors)

    @property
    def floor_functions(self) -> tuple[str, ...]:
        """Divisions that round down, which the C++ of mask and score function calls."""
        texts = [term.value for term in self.terms]
        if self.score.IS_EXPRESSION:
            texts.append(self.score_text.text)
        called = {name for name in FLOOR_FUNCTIONS for text in texts if f"{name}(" in text}
        called |= set(self.mask.floor_functions)
        return tuple(name for name in FLOOR_FUNCTIONS if name in called)

    @property
    def score_text(self) -> ScoreText:
        """C++ of a score function that is an expression."""
        from fa4gen.designs.common.score_terms import score_text  # as in ``terms``
        from fa4gen.scores.expression import ExpressionScore

        assert isinstance(self.score, ExpressionScore)
        return score_text(self.score)

    @property
    def accessors(self) -> tuple[tuple[str, ...], ...]:
        """C++ lines of the functions that read declared tensors."""
        extents = self.place_names.extents
        return tuple(accessor(tensor, extents) for tensor in self.declared_tensors)

    @property
    def term_words(self) -> str:
        """The unit with terms of its own: a tile, or a row where a tile has several heads' rows."""
        return "row" if self.splits_keys else "tile"

    @property
    def given_names(self) -> tuple[str, ...]:
        """The kernel's names for their addresses."""
        names = tuple(map(given, self.named_tensors))
        if self.takes_blocks:
            return names + given_block_names()
        if not self.lists_blocks:
            return names
        from fa4gen.masks.block_lists import BLOCK_LISTS  # of few kernels

        return names + tuple(f"{GIVEN}{name}" for name in BLOCK_LISTS)

    @property
    def longest_first(self) -> bool:
        """Whether tiles are taken in the order of their keys, the one with the most in front."""
        return self.scheduler == "dynamic" and (self.mask.IN_ORDER or self.lists_blocks)

    @property
    def list_number(self) -> str:
        """C++ for the number of a tile's batch and head among those that have lists of blocks."""
        from fa4gen.masks.block_lists import list_axes

        batch, heads = list_axes(self.mask)
        if batch and heads:
            return "static_cast<int64>(tile.batch) * problem.query_heads + tile.head"
        return "tile.batch" if batch else "tile.head" if heads else "0"

    @property
    def box_rows(self) -> int:
        """Rows of a box of keys, where they are in pages: of one page, and of one block."""
        return self.tensor_map("key").box[1]

    @property
    def group_keys(self) -> int:
        """Keys of a head that stay in L2 with their values, where tiles come from a list."""
        return GROUP_L2_BYTES // ((self.depth + self.value_depth) * self.kv_element_bytes)

    def workspace_bytes(self, multiprocessors: int, line: int = 0) -> int:
        """Return the bytes of a launch's partial results; 0 for kernels without.

        ``line``: splits of all tiles, where they have a fixed number of keys.
        """
        del multiprocessors, line
        return 0

    @property
    def line_step(self) -> int:
        """Blocks of keys that no two CTAs share, where they share those of a tile."""
        return 1

    @property
    def line_keys(self) -> int:
        """Keys of a place of the line, which a kernel with CTAs that share keys counts."""
        return self.BN

    @property
    def ticket_bytes(self) -> int:
        """Bytes in front of a workspace that are zero before and after a launch."""
        return 0

    @property
    def partial_stride(self) -> int:
        """Floats of a row of a partial result; 0 where there are none."""
        return 0

    @property
    def operation(self) -> str:
        """The kernel's function, in a line."""
        return "attention forward, O = softmax(scale * Q . K^T) . V"

    @property
    def packed_dtype(self) -> str:
        """The 16-bit type that pairs of float32 are rounded to for the output."""
        return self.out_dtype

    @property
    def gated(self) -> bool:
        """Whether a tensor map has gate and up apart: of products alone."""
        return False

    @property
    def ties_rows(self) -> bool:
        """Whether rows share a maximum, which may be above that of one of them."""
        return False

    @property
    def probability_shift(self) -> int:
        """Probabilities are scaled by 2 to this power before they are rounded."""
        return 0

    @property
    def zero_scale_log2(self) -> int | None:
        """The logarithm that stands for that of 0, where exponents take scales of pages' values.

        None: powers of two in the scales join exponents, and factors multiply probabilities.
        """
        return None

    @property
    def promoted_keys(self) -> int | None:
        """The keys after which outputs leave the tensor cores' sums for float32; None: never."""
        return None

    @property
    def votes_on_rescaling(self) -> bool:
        """Whether warps vote on rescaling their rows; else they do at every block."""
        return self.rescale_threshold > 0

    @property
    def tiles_per_cluster(self) -> int:
        """Tiles of query rows that the CTAs of a cluster work on at once."""
        return self.cta_group // self.ctas_per_tile

    @property
    def cluster_queries(self) -> int:
        """Queries of a cluster's tiles, which walk the same blocks of keys."""
        return self.tile_queries * self.tiles_per_cluster
