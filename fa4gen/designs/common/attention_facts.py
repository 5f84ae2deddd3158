"""The facts of a plan of attention that follow from its config alone, whatever the design."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fa4gen.counts import counted
from fa4gen.designs.common.kernel_model import KernelPlan
from fa4gen.designs.common.rings import Ring
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import AttentionKeys
    from fa4gen.designs.common.rings import End
    from fa4gen.designs.common.tensor_maps import Tensor as Operand
    from fa4gen.expressions.tensors import Tensor
    from fa4gen.key_sources import Batching, Keys, KeySource
    from fa4gen.masks.mask import Mask
    from fa4gen.scores.score import Score


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)  # a base: quicker
class AttentionFacts(KernelPlan):
    """The facts of a plan by its config, every ``auto`` decided; ``dtype`` is the query's."""

    RECORDED = (
        *KernelPlan.RECORDED, "kv_dtype", "kv_scale", "depth", "value_depth", "mask", "lse",
        "max_logits", "sinks", "score", "declared_tensors", "has_descales", "BM", "BN",
        "num_kv_stages", "epilogue", "rescale_threshold", "mixed_tile_heights", "panel_columns",
        "num_panels", "batching", "keys", "page_size", "key_lengths", "lists_blocks", "tile_heads",
    )  # fmt: skip

    config: AttentionKeys
    BN: int
    """Keys of a block."""
    num_kv_stages: int = 1
    """Slots of the rings of keys and values; one until the rest is decided."""
    epilogue: str
    rescale_threshold: float

    @property
    def kv_dtype(self) -> str:
        """The type of key and value."""
        return self.config.resolved_kv_dtype

    @property
    def kv_scale(self) -> str:
        """The unit with a scale of its own, where keys and values have scales: "head" or "page"."""
        return self.config.resolved_kv_scale

    @property
    def depth(self) -> int:
        """Columns of query and key."""
        return self.config.depth

    @property
    def value_depth(self) -> int:
        """Columns of value and output."""
        return self.config.resolved_value_depth

    @cached_property
    def mask(self) -> Mask:
        """The keys that a query row sees."""
        return self.config.resolved_mask

    @cached_property
    def seen_mask(self) -> Mask:
        """The mask together with the blocks that a call names, for a reference."""
        given = self.config.given_blocks
        if given is None:
            return self.mask
        from fa4gen.masks.given_blocks import GivenBlocksMask  # of few kernels

        return GivenBlocksMask(self.mask, given.rows, given.keys, given.heads)

    @property
    def lse(self) -> bool:
        """Whether the log-sum-exp of every row is written, too."""
        return self.config.lse

    @property
    def max_logits(self) -> bool:
        """Whether a launch raises a number of each query head to the largest of its logits."""
        return bool(self.config.raised_tensors)

    @property
    def sinks(self) -> bool:
        """A logit of each query head joins the sum of the softmax, and the log-sum-exp."""
        return self.config.sinks

    @cached_property
    def score(self) -> Score:
        """The function of logits before the mask."""
        return self.config.resolved_score

    @cached_property
    def declared_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of a call that mask and score function read."""
        return self.config.declared_tensors

    @cached_property
    def named_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that a call passes by their names: read ones, then those that it raises."""
        return self.declared_tensors + self.config.raised_tensors

    @property
    def has_descales(self) -> bool:
        """Tensors of fp8 come with a scale for each batch, or page, and key head."""
        return False

    @property
    def has_lines_of_keys(self) -> bool:
        """Whether the keys of each column of values are contiguous in global memory."""
        return False

    @property
    def BM(self) -> int:  # noqa: N802
        """Query rows of a CTA's tile."""
        raise NotImplementedError

    @property
    def mixed_tile_heights(self) -> bool:
        """Some tiles leave warpgroups out: to even out the waves, or at a sequence's end."""
        return False

    @property
    def panel_columns(self) -> int:
        """Columns of a swizzled panel of queries and keys: as many as tile the depth."""
        raise NotImplementedError

    @property
    def num_panels(self) -> int:
        """Panels of queries and keys side by side along the depth."""
        return self.depth // self.panel_columns

    @property
    def batching(self) -> Batching:
        """The places of queries: "dense", or "ragged", in sequences of any lengths."""
        return self.config.batching

    @property
    def keys(self) -> Keys:
        """The places of keys and values: "dense", "ragged" or "paged"."""
        return self.config.resolved_keys

    @property
    def page_size(self) -> int | None:
        """Keys of a page, where keys are paged."""
        return self.config.page_size

    @property
    def key_lengths(self) -> bool:
        """The keys of each sequence that count are read on the device."""
        return self.config.resolved_key_lengths

    @property
    def lists_blocks(self) -> bool:
        """Lists that come with the call say which blocks of keys a tile sees."""
        return self.config.lists_blocks

    @property
    def takes_blocks(self) -> bool:
        """A call names the blocks of keys that each block of query rows sees."""
        return self.config.given_blocks is not None

    @property
    def leaves_blocks_out(self) -> bool:
        """Only blocks of keys that lists of the call name are loaded."""
        return self.lists_blocks or self.takes_blocks

    @property
    def tile_heads(self) -> int:
        """Query heads of a key head whose rows share a tile: row r is of head r % tile_heads."""
        return 1

    @property
    def kv_element_bytes(self) -> int:
        """Bytes of an element of key and value."""
        return 1 if self.kv_dtype == "fp8_e4m3" else self.element_bytes

    @property
    @override
    def panel_element_bytes(self) -> int:
        return self.kv_element_bytes

    @property
    @override
    def operand_dtype(self) -> str:
        # fp16 has all numbers of e4m3.
        return self.dtype if self.kv_dtype == self.dtype else "fp16"

    @property
    def descaled(self) -> tuple[str, ...]:
        """The tensors that come with scales."""
        if not self.has_descales:
            return ()
        return ("key", "value") if self.kv_dtype != self.dtype else ("query", "key", "value")

    @property
    def has_page_scales(self) -> bool:
        """Whether the scales are those of pages, not of sequences."""
        return self.has_descales and self.kv_scale == "page"

    @property
    def query_source(self) -> KeySource:
        """The places of a sequence's query rows."""
        return self.config.query_source

    @property
    def key_source(self) -> KeySource:
        """The places of its keys and values."""
        return self.config.key_source

    @property
    def is_ragged(self) -> bool:
        """Whether queries are those of sequences of any lengths, and tiles come from a list."""
        return self.batching == "ragged"

    @property
    def is_paged(self) -> bool:
        """Whether keys and values are in pages, whose rows a warp looks up and copies together."""
        return self.keys == "paged"

    @property
    def has_tile_lengths(self) -> bool:
        """Whether rows or keys differ from tile to tile: a tile then brings its lengths along."""
        return self.query_source.clipped or self.key_source.clipped

    @property
    def feature_lines(self) -> tuple[str, ...]:
        """Lines of the summary on what not every kernel has: a score function, lengths."""
        lengths = f"batching {self.batching}; keys {self.keys}"
        given = self.config.given_blocks
        blocks = ""
        if given is not None:
            blocks = f"lists of the call name blocks of {given.rows} query rows x {given.keys} keys"
        lines = (self.score.words, lengths if self.has_tile_lengths else "", blocks)
        return tuple(filter(None, lines))

    @property
    def keys_past_ring(self) -> int:
        """Keys of one block more than fit the ring, or than two: a slot is used again."""
        return (max(self.num_kv_stages, 2) + 1) * self.BN

    @property
    def clipped_tensors(self) -> tuple[Operand, ...]:
        """The tensors whose maps end where a sequence does."""
        queries: tuple[Operand, ...] = ("query", "out") if self.query_source.clipped else ()
        keys: tuple[Operand, ...] = ("key", "value") if self.key_source.clipped else ()
        return queries + keys

    @property
    def types_line(self) -> str:
        """The first line of the summary: types, depth and mask."""
        output = "" if self.out_dtype == self.dtype else f" to {self.out_dtype}"
        depth = f"depth {self.depth}"
        if self.value_depth != self.depth:
            depth += f", of values {self.value_depth}"
        return f"{self.dtype}{output}, sums in float32; {depth}; mask {self.mask.words}"

    @property
    def stages(self) -> str:
        """The slots of the rings in words, for the summary."""
        return counted(self.num_kv_stages, "stage")

    def block_ring(self, name: str, slot_bytes: int, holds: str, full: End, empty: End) -> Ring:
        """Return a ring of keys, of values, or of both in turn."""
        return Ring(
            name=name,
            key="num_kv_stages",
            slots=self.num_kv_stages,
            slot_bytes=slot_bytes,
            holds=holds,
            full=full,
            empty=empty,
        )
