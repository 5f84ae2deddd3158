"""The plan of kernels with packed heads and shares of the keys, in addition to that of any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.designs.common.decode_cost import cost_lines
from fa4gen.designs.common.decode_joins import (
    MOST_SHARING,
    most_joined_by_neighbours,
    pieces_to_join,
)
from fa4gen.designs.common.decode_parameters import PARTIALS_PER_CTA, decode_parameters
from fa4gen.designs.common.score_text import Names
from fa4gen.designs.common.shared_memory import slots_of
from fa4gen.designs.common.unreachable import Unreachable
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import PackedKeys
    from fa4gen.designs.common.model import Parameter, SharedRegion

EXTENTS = {
    "batch": "problem.batch",
    "query_heads": "problem.heads_per_key_head * problem.key_heads",
    "key_heads": "problem.key_heads",
    "rows": "problem.query_rows",
    "keys": "problem.most_key_rows",
}
"""The extents of a declared tensor as C++, in such a kernel."""
PARTIAL_PADDING = 4
"""Floats after each row of a partial result: its maximum, its sum, and two that are not used."""
FLOAT_BYTES = 4
SLICE_BYTES = 32
PARKED_BYTES = 32
CHUNK = 16
"""Bytes: what vector accesses are aligned to."""
TICKETS_PER_CTA = 1
"""Counts the pieces of the tile that its share ends in."""
WARP = 32
WGMMA_ROWS = 64
MMA_ROWS = 8
"""Query rows of one mma.sync: its narrow side."""
MOST_SEQUENCES = 4096
"""The most sequences with lengths that are summed in shared memory."""
MOST_CTAS = 1024
"""More than any chip has multiprocessors: the tickets have a fixed place, whatever the grid."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class SharedKeysPlan(AttentionPlan):
    """Attention forward of packed heads, with shares of the keys."""

    RECORDED = (
        *AttentionPlan.RECORDED, "packed_rows", "num_consumer_warps", "num_parts", "part_keys",
        "part_words", "is_wide", "unit_keys", "exchange_columns", "split_blocks",
        "most_sequences", "most_ctas",
    )  # fmt: skip

    config: PackedKeys
    cta_group: int = 1
    scheduler: str = "static"
    epilogue: str = "direct"
    splits_keys: bool = True
    """CTAs share the keys of a tile."""
    votes_on_rescaling: bool = True
    """Whatever the threshold."""
    packed_rows: int
    """Rows of a tile: query rows of all heads of a key head."""
    num_parts: int
    """Warps, or warpgroups, each with keys and a softmax of its own."""
    part_keys: int
    """Keys of a block that one part takes."""
    most_sequences: int = MOST_SEQUENCES
    """The most sequences of a call with lengths that are read on the device."""
    most_ctas: int = MOST_CTAS
    partials_per_cta: int = PARTIALS_PER_CTA
    """The partial results of a CTA, for templates."""

    @property
    @override
    def BM(self) -> int:  # noqa: N802
        return self.packed_rows

    @property
    def num_consumer_warps(self) -> int:
        """Warps of all parts."""
        raise NotImplementedError

    @property
    def part_words(self) -> str:
        """The name of a part: "warp", "warpgroup" or "pair"."""
        raise NotImplementedError

    @property
    def is_wide(self) -> bool:
        """Whether the rows of a tile are those of a wgmma, and the parts warpgroups."""
        raise NotImplementedError

    @property
    def unit_keys(self) -> int:
        """Keys that shares are counted in, and that one box has."""
        raise NotImplementedError

    @property
    def exchange_columns(self) -> int:
        """Columns of the output that parts put together at once."""
        raise NotImplementedError

    @property
    def split_blocks(self) -> int:
        """Blocks of a split of a fixed number of keys; 0 for even shares."""
        split = self.config.split_keys
        return 0 if split == "auto" else split.keys // self.BN

    @property
    @override
    def grid(self) -> str:
        return "as many CTAs as multiprocessors, or blocks of keys where there are fewer"

    @property
    @override
    def cooperative(self) -> bool:
        return not self.split_blocks

    @property
    @override
    def parameters(self) -> tuple[Parameter, ...]:
        return decode_parameters(self.config, has_splits=self.split_blocks > 0)

    @property
    def split_line(self) -> str:
        """The line of the summary on how CTAs share keys, and combine their results."""
        split = self.config.split_keys
        if split != "auto":
            return f"split keys: {split.keys} keys each, combined by the last CTA of a tile"
        return (
            f"split keys: even shares, in units of {self.unit_keys} keys, combined by all CTAs of "
            "a tile, a slice each; a cooperative launch"
        )

    @property
    def combining_region(self) -> SharedRegion:
        """The region for combining in a CTA."""
        if self.split_blocks:
            holds = "Whether this CTA combines the splits of a tile"
            return slots_of("combines", 1, FLOAT_BYTES, holds, alignment=CHUNK)
        ends = "the tile that it begins in, and of the one that it ends in"
        holds = f"What this CTA combines of {ends}"
        return slots_of("slices", 1, 2 * SLICE_BYTES, holds, alignment=CHUNK)

    @property
    def line_bytes(self) -> int:
        """Bytes of the line of the sequences in shared memory."""
        return (self.most_sequences + 1) * FLOAT_BYTES

    @property
    def line_sums_bytes(self) -> int:
        """Bytes of the sums of the line, by warps."""
        return self.most_sequences // WARP * FLOAT_BYTES

    @property
    @override
    def explained(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        shares = self.hardware.multiprocessors // self.ctas_per_tile
        split, who = self.split_blocks * self.BN, "CTA" if self.ctas_per_tile == 1 else "pair"
        lines = cost_lines(shares, unit=self.unit_keys, split=split, who=who)
        return (*super().explained, ("Shares of the keys", lines))

    @property
    def place_names(self) -> Names:
        """Rows of a tile are of several heads, and a tile's keys are those of its sequence."""
        return Names(
            head="row.head",
            key_head="tile.within / problem.tiles_per_head",
            batch="tile.sequence",
            extents=EXTENTS,
        )

    @property
    def split_units(self) -> int:
        """Units of a split of a fixed number of keys; 0 for even shares."""
        return self.split_blocks * self.BN // self.unit_keys

    @property
    def log_consumer_threads(self) -> int:
        """Binary logarithm of the number of threads that compute."""
        return (32 * self.num_consumer_warps).bit_length() - 1

    @property
    def quads_at_once(self) -> int:
        """Quads of four columns that a thread of a wide tile combines at once, of several rows.

        As many as registers have room for: at depth 64 the loader of pages takes some of them, at
        depth 128 the lengths of a tile.
        """
        most = 2 if self.has_tile_lengths and self.value_depth == 128 else 4
        return min(most, self.value_depth // 32) if self.is_wide else 1

    @property
    def partials_at_once(self) -> int:
        """Partial results of a quad that a thread loads before it joins the first."""
        if self.quads_at_once > 1:
            return 4
        return 12 if self.split_blocks else 8

    @property
    def neighbours_joined(self) -> tuple[int, int]:
        """See ``most_joined_by_neighbours``."""
        return most_joined_by_neighbours(self._quads, self._threads, self.partials_at_once)

    @property
    def pieces_to_join(self) -> tuple[int, int]:
        """See ``pieces_to_join``."""
        return pieces_to_join(self._quads, self._threads, self.quads_at_once, self.partials_at_once)

    @property
    def _quads(self) -> int:
        return self.packed_rows * self.value_depth // 4

    @property
    def _threads(self) -> int:
        return 1 << self.log_consumer_threads

    @property
    @override
    def unreachable(self) -> tuple[Unreachable, ...]:
        return (*self._pieces_joined, *self._first_columns)

    @property
    def _first_columns(self) -> tuple[Unreachable, ...]:
        rounds = self.value_depth // self.exchange_columns
        if self.is_wide or rounds == 1:
            return ()
        reason = "column 0 is among the first columns that parts put together"
        return tuple(
            Unreachable(function, "if (column == 0)", reason, (rounds - 1, rounds))
            for function in ("store_columns", "store_partial")
        )

    @property
    def _pieces_joined(self) -> tuple[Unreachable, ...]:
        if self.key_lengths or self.split_blocks or self.quads_at_once > 1:
            return ()
        of, (joined, _) = self.partials_at_once, self.neighbours_joined
        if joined == of:
            return ()
        reason = (
            f"of tiles of one length a thread joins no more than {joined} pieces, but where more "
            f"than {MOST_SHARING * joined} CTAs share a tile, too many to emulate"
        )
        return (Unreachable("join_partials", "if (part < count)", reason, (of - joined, of)),)

    @property
    def line_step(self) -> int:
        """A split, or a block."""
        return max(1, self.split_blocks)

    @property
    def line_keys(self) -> int:
        """Keys of a split, or of a unit: see visible_units and places of the kernel."""
        return self.split_blocks * self.BN if self.split_blocks else self.unit_keys

    @property
    def partial_stride(self) -> int:
        """Floats of a row of a partial result."""
        return self.value_depth + PARTIAL_PADDING

    @property
    def ticket_bytes(self) -> int:
        """Bytes of the tickets, in front of the workspace; of splits, each is in its partial."""
        return 0 if self.split_blocks else self.most_ctas * TICKETS_PER_CTA * 4

    def workspace_bytes(self, multiprocessors: int, line: int = 0) -> int:
        """Return the bytes of a launch: tickets, then partial results of each share, or split."""
        partial = self.packed_rows * self.partial_stride * FLOAT_BYTES
        if self.split_blocks:
            return line * partial
        shares = max(1, min(multiprocessors, self.most_ctas) // self.ctas_per_tile)
        return self.ticket_bytes + shares * PARTIALS_PER_CTA * partial
