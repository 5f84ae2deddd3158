"""The keys that configs of several designs of attention have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fa4gen.designs.common.declared import TensorValue, all_tensors
from fa4gen.designs.common.expression_check import check_expressions
from fa4gen.designs.common.kernel_config import KernelConfig, RegisterBudget
from fa4gen.key_sources import Batching, Keys, key_source_of, query_source_of
from fa4gen.masks import MaskValue, mask_of
from fa4gen.overriding import override
from fa4gen.scores import ScoreValue, SoftcapValue, score_of
from fa4gen.strict import Auto, Field, FixedKey, Strict, rule

if TYPE_CHECKING:
    from fa4gen.expressions.tensors import Tensor
    from fa4gen.key_sources import KeySource
    from fa4gen.masks.mask import Mask
    from fa4gen.scores.score import Score

OF_PACKED_HEADS = "kernels with pack_heads: true alone read it"
PREFILL_FIXED = (
    FixedKey("packed_rows", ("auto",), OF_PACKED_HEADS),
    FixedKey("split_keys", ("auto",), OF_PACKED_HEADS),
    FixedKey("kv_dtype", ("auto",), OF_PACKED_HEADS),
)
"""Keys of packed heads, in designs whose tiles have rows of one head."""
NO_PAGE_SCALES = FixedKey(
    "kv_scale", ("auto",), "decode, and fp8 attention on Hopper up to depth 256, read it"
)
"""The key of scales for pages, in designs of prefill that have none."""


class AttentionKeys(KernelConfig):
    """Keys of every attention config, for all architectures."""

    kernel: Literal["attention"]
    """Kernel family."""
    dtype: str
    """Element type of query, key, value and output. Sums are kept in float32."""
    depth: int
    """Head dimension of query and key, in elements."""
    mask: MaskValue = "none"
    """The keys that a row sees; the diagonal ends at the bottom right corner. none: all of them."""
    lse: bool = True
    """Also write the log-sum-exp of every row, float32 (batch, heads, query rows)."""
    sinks: bool = False
    """A logit of each query head, given with the call, joins the sum of every softmax."""
    softcap: SoftcapValue | None = None
    """Logits become softcap * tanh(logit / softcap) before the mask."""
    score: ScoreValue | None = None
    """A function of logits before the mask, such as "score - 0.5 * (query - key)"."""
    parameters: dict[str, TensorValue] | None = None
    """Tensors that mask and score read, given with the call, each with dtype and shape."""
    batching: Batching = "dense"
    """ragged: query rows of sequences of any lengths, one after the other (rows, heads, depth)."""
    keys: Keys | Auto = "auto"
    """ragged: likewise keys and values; paged: in pages of a cache; as batching when not given."""
    page_size: Literal[16, 32, 64, 128, 256] | None = None
    """Keys of a page, where keys are paged."""
    key_lengths: bool = False
    """The device has the number of keys of each sequence that count; always so with pages."""

    @property
    def resolved_mask(self) -> Mask:
        """The mask with its numbers."""
        return mask_of(self.mask)

    @property
    def resolved_score(self) -> Score:
        """The score function with its numbers."""
        return score_of(vars(self), self.declared_tensors)

    @property
    def declared_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of ``parameters``, and those that a mask or score with a name reads."""
        return all_tensors(self.parameters, self.mask, self.score)

    @property
    def resolved_value_depth(self) -> int:
        """Columns of value and output."""
        return int(self._given_or("value_depth", self.depth))

    @property
    def resolved_kv_dtype(self) -> str:
        """Element type of key and value."""
        return str(self._given_or("kv_dtype", self.dtype))

    @property
    def resolved_kv_scale(self) -> str:
        """The unit with a scale of its own, for scaled keys and values."""
        return str(self._given_or("kv_scale", "head"))

    def _given_or(self, key: str, default: Any) -> Any:
        """Return the value of a key that not every design has, or what auto stands for."""
        value = vars(self).get(key, "auto")
        return default if value == "auto" else value

    @property
    def lists_blocks(self) -> bool:
        """Whether lists that come with a call say which blocks of keys a tile sees."""
        return False

    @property
    def raised_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of a call that a launch raises: the largest logit of each head so far."""
        return ()

    @property
    def given_blocks(self) -> GivenBlocks | None:
        """The blocks that lists of a call name, without a mask that these follow from."""
        return None

    @property
    def resolved_keys(self) -> Keys:
        """The places of keys and values."""
        return self.batching if self.keys == "auto" else self.keys

    @property
    def resolved_key_lengths(self) -> bool:
        """Whether the keys that count are read on the device, sequence by sequence."""
        return self.key_lengths or self.resolved_keys == "paged"

    @property
    def query_source(self) -> KeySource:
        """The places of a sequence's query rows."""
        return query_source_of(self.batching)

    @property
    def key_source(self) -> KeySource:
        """The places of a sequence's keys and values."""
        return key_source_of(
            self.resolved_keys, has_lengths=self.key_lengths, page_size=self.page_size
        )

    @property
    def has_tile_lengths(self) -> bool:
        """Whether rows or keys differ from tile to tile: a tile then brings its lengths along."""
        return self.query_source.clipped or self.key_source.clipped

    @rule
    def _expressions_are_possible(self) -> None:
        check_expressions(self.mask, vars(self), self.declared_tensors)
        if self.resolved_keys == "paged" and self.page_size is None:
            return  # the next rule refuses that
        sources = {"rows": self.query_source, "keys": self.key_source}
        differ = [axis for axis, source in sources.items() if source.clipped]
        lengths = [
            f"{tensor.name} ({tensor.axes})"
            for tensor in self.declared_tensors
            if set(differ) & set(tensor.shape)
        ]
        if lengths:
            raise ValueError(
                f"parameters: {', '.join(lengths)}: {' and '.join(differ)} are those of a call, "
                "and here they differ from sequence to sequence; use batch, heads or numbers"
            )

    @rule
    def _keys_go_together(self) -> None:
        keys = self.resolved_keys
        if (keys == "paged") != (self.page_size is not None):
            raise ValueError(
                "keys: paged needs page_size: 16, 32, 64, 128 or 256"
                if keys == "paged"
                else f"page_size: {self.page_size} is for keys: paged, but keys are {keys}"
            )
        if keys == "ragged" and self.batching == "dense":
            raise ValueError(
                "keys: ragged needs batching: ragged; or keys: dense with key_lengths: true"
            )
        if keys == "dense" and self.batching == "ragged" and not self.key_lengths:
            raise ValueError("keys: dense with batching: ragged needs key_lengths: true")
        if keys == "ragged" and self.key_lengths:
            raise ValueError(
                "key_lengths: true is for keys: dense or paged; with keys: ragged the lengths "
                "follow from key_offsets"
            )


class GivenBlocks(Strict):
    """Blocks of keys that a call names for every block of query rows, whatever the mask."""

    rows: Literal[64, 128]
    """Query rows that share a list."""
    keys: Literal[64, 128]
    """Keys of a block that a list names."""
    heads: Literal["query", "key"] = "query"
    """Heads with lists of their own; key: the query heads of a key head share theirs."""


class ListedKeys(AttentionKeys):
    """Keys of designs whose CTAs may walk the blocks of keys of a list."""

    blocks: Literal["walked", "listed"] | GivenBlocks = "walked"
    """listed: blocks in lists made from a mask with tensors; {rows: 64, keys: 64}: in any lists."""

    @property
    @override
    def given_blocks(self) -> GivenBlocks | None:
        return self.blocks if isinstance(self.blocks, GivenBlocks) else None

    @property
    def lists_blocks(self) -> bool:
        """Whether lists that come with a call say which blocks of keys a tile sees."""
        return self.blocks == "listed"

    @rule
    def _lists_are_possible(self) -> None:
        if self.lists_blocks:
            from fa4gen.designs.common.listed import check_lists  # of few configs

            check_lists(self.resolved_mask, self.resolved_keys, vars(self))


class HopperKeys(AttentionKeys):
    """Keys of attention by wgmma (sm_90a), with elements of 16 bits."""

    arch: Literal["sm_90a"]
    """Architecture that the kernel is written for."""
    dtype: Literal["bf16", "fp16"]
    """Element type of query, key, value and output. Sums are kept in float32."""
    rescale_threshold: Annotated[float, Field(ge=0, le=10)] = 8.0
    """Rescale the output only when a row's maximum grew by more than this, in powers of two."""


class PrefillKeys(AttentionKeys):
    """Keys of attention in tiles of rows of one head, or of few heads."""

    scheduler: Literal["auto", "static", "dynamic"] = "auto"
    """Tiles in a fixed order, or assigned by an atomic counter, longest first."""
    pack_heads: Literal[False] = False
    """true: rows of a tile are the query rows of all heads of a key head, in another kernel."""
    max_logits: bool = False
    """Raise max_logits, float32 (query heads), to the largest logit of each head (QK-clip)."""

    @property
    def raised_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of a call that a launch raises: the largest logit of each head so far."""
        if not self.max_logits:
            return ()
        from fa4gen.expressions.tensors import Tensor  # of few configs

        return (Tensor("max_logits", "fp32", ("query_heads",)),)


class HopperPrefillKeys(PrefillKeys):
    """Keys of attention by wgmma in tiles of rows of one head, or of few heads."""

    arch: Literal["sm_90a"]
    """Architecture that the kernel is written for."""
    registers: RegisterBudget | Auto = "auto"
    """Registers per thread of the producer and of each consumer."""


class RoleRegisters(Strict):
    """Registers per thread of each kind of warp after ``setmaxnreg``."""

    softmax: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    correction: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    other: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    """For the warpgroup of the load warp and the MMA warp."""


class OutputKeys(AttentionKeys):
    """Keys of attention whose output may have another type than its inputs."""

    out_dtype: Literal["auto", "bf16", "fp16"] = "auto"
    """Element type of the output: as dtype when not given, and bf16 for fp8."""

    @property
    def resolved_out_dtype(self) -> str:
        """Element type of the output."""
        if self.out_dtype != "auto":
            return self.out_dtype
        return "bf16" if self.dtype == "fp8_e4m3" else self.dtype


class BlackwellKeys(OutputKeys):
    """Keys of attention by tcgen05 (sm_100a, sm_103a, sm_100f)."""

    arch: Literal["sm_100a", "sm_103a", "sm_100f"]
    """Architecture that the kernel is written for."""
    rescale_threshold: Annotated[float, Field(ge=0, le=10)] | Auto = "auto"
    """Rescale the output only when a row's maximum grew by more than this, in powers of two."""


class BlackwellPrefillKeys(PrefillKeys, BlackwellKeys):
    """Keys of attention by tcgen05 in tiles of rows of one head."""

    dtype: Literal["bf16", "fp16", "fp8_e4m3"]
    """Element type of query, key and value, and of the output unless out_dtype says otherwise."""
    num_kv_stages: Annotated[int, Field(ge=1, le=32)] | Auto = "auto"
    """Slots of the ring of K blocks, and of the ring of V blocks; of both in a fused ring."""
    exp2_fma_share: Annotated[float, Field(ge=0, le=1, multiple_of=0.125)] | Auto = "auto"
    """Share of the exponentials that the FMA pipe computes, in eighths; the rest use ex2."""
    registers: RoleRegisters | Auto = "auto"
    """Registers per thread of each kind of warp."""


class KeysOfSplit(Strict):
    """Splits of a fixed number of keys: results do not depend on the other sequences of a batch."""

    keys: Annotated[int, Field(ge=64, le=2**20, multiple_of=64)]
    """Keys of a split: a multiple of the keys of a block."""


class PackedKeys(AttentionKeys):
    """Keys of attention whose tiles have the query rows of all heads of a key head."""

    pack_heads: Literal[True]
    """Rows of a tile are the query rows of all heads of a key head: for few rows and many keys."""
    split_keys: Auto | KeysOfSplit = "auto"
    """The shares of a tile's keys among CTAs: even shares of all blocks, or {keys: N}."""
