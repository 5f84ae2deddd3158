"""What a user may write in a config, as typed models.

Types, ranges and the rules between keys that need no arithmetic on resources are here;
anything that depends on shared memory or registers is decided (and refused) by the plan.
Field names are YAML keys, plan fields, C++ constants (kCamelCase) and manifest fields alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, get_args

from fa4gen.config.declared import TensorValue, all_tensors
from fa4gen.config.expressions import check_expressions
from fa4gen.config.gemm import BlackwellGemmConfig, HopperGemmConfig
from fa4gen.key_sources import Batching, Keys, key_source_of, query_source_of
from fa4gen.masks import MaskValue, mask_of
from fa4gen.scores import ScoreValue, SoftcapValue, score_of
from fa4gen.strict import Auto, Field, Strict, rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.expressions.tensors import Tensor
    from fa4gen.key_sources import KeySource
    from fa4gen.masks.mask import Mask
    from fa4gen.scores.score import Score


PACKED_HEADS_KEYS = ("packed_rows", "split_keys", "kv_dtype", "kv_scale")
"""Keys of attention that only a kernel with ``pack_heads: true`` reads."""


class AttentionKeys(Strict):
    """Keys of every attention config, for all architectures."""

    kernel: Literal["attention"]
    """Kernel family."""
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)]
    """Name of the kernel, its files and its entry point; the file's stem when not given."""
    arch: str
    """Architecture that the kernel is written for."""
    dtype: str
    """Element type of query, key, value and output. Sums are kept in float32."""
    depth: int
    """Head dimension, in elements."""
    mask: MaskValue = "none"
    """Which keys a row sees; the diagonal ends at the bottom right corner. none: all of them."""
    lse: bool = True
    """Also write the log-sum-exp of every row, float32 (batch, heads, query rows)."""
    sinks: bool = False
    """A logit of each query head, given with the call, joins the sum of every softmax."""
    softcap: SoftcapValue | None = None
    """Logits become softcap * tanh(logit / softcap) before the mask."""
    score: ScoreValue | None = None
    """What logits become before the mask, such as "score - 0.5 * (query - key)"."""
    parameters: dict[str, TensorValue] | None = None
    """Tensors that mask and score read, given with the call, each with dtype and shape."""
    batching: Batching = "dense"
    """ragged: query rows of sequences of any lengths, one after the other (rows, heads, depth)."""
    keys: Keys | Auto = "auto"
    """ragged: likewise keys and values; paged: in pages of a cache; as batching when not given."""
    page_size: Literal[16, 32, 64, 128, 256] | None = None
    """Keys of a page, where keys are paged."""
    key_lengths: bool = False
    """How many keys of each sequence count is read on the device; always so with pages."""
    blocks: Literal["walked", "listed"] = "walked"
    """listed: only blocks of keys in lists that come with the call, for masks with tensors."""
    kv_dtype: Literal["fp8_e4m3"] | Auto = "auto"
    """With pack_heads, element type of key and value where it is not dtype: half the bytes."""
    kv_scale: Literal["head", "page"] | Auto = "auto"
    """With kv_dtype, whether sequences or pages have a scale for each key head; head: sequences."""

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
    def resolved_kv_dtype(self) -> str:
        """Element type of key and value."""
        return self.dtype if self.kv_dtype == "auto" else self.kv_dtype

    @property
    def resolved_kv_scale(self) -> str:
        """What has a scale of its own, where keys and values have any."""
        return "head" if self.kv_scale == "auto" else self.kv_scale

    @property
    def lists_blocks(self) -> bool:
        """Whether lists that come with a call say which blocks of keys a tile sees."""
        return self.blocks == "listed"

    @property
    def resolved_keys(self) -> Keys:
        """Where keys and values are."""
        return self.batching if self.keys == "auto" else self.keys

    @property
    def resolved_key_lengths(self) -> bool:
        """Whether the keys that count are read on the device, sequence by sequence."""
        return self.key_lengths or self.resolved_keys == "paged"

    @property
    def query_source(self) -> KeySource:
        """Where the query rows of a sequence are."""
        return query_source_of(self.batching)

    @property
    def key_source(self) -> KeySource:
        """Where the keys and values of a sequence are."""
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
    def _lists_are_possible(self) -> None:
        if self.lists_blocks:
            from fa4gen.config.listed import check_lists  # of few configs

            check_lists(self.resolved_mask, self.resolved_keys, vars(self))

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

    @rule
    def _packed_heads_have_keys_of_their_own(self) -> None:
        given = vars(self)
        unread = [key for key in PACKED_HEADS_KEYS if given[key] != "auto"]
        if unread and not given["pack_heads"]:
            keys = " and ".join(unread)
            raise ValueError(
                f"{keys}: for kernels with pack_heads: true alone, but pack_heads is false; set "
                f"pack_heads: true or drop {keys}"
            )


class RegisterBudget(Strict):
    """Registers per thread of each role after ``setmaxnreg``."""

    producer: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    consumer: Annotated[int, Field(ge=24, le=256, multiple_of=8)]


class KeysOfSplit(Strict):
    """Splits of a fixed number of keys: results do not depend on the other sequences of a batch."""

    keys: Annotated[int, Field(ge=64, le=2**20, multiple_of=64)]
    """Keys of a split: a multiple of the keys of a block."""


SplitValue = Auto | KeysOfSplit


class AttentionConfig(AttentionKeys):
    """Attention forward on Hopper (sm_90a)."""

    arch: Literal["sm_90a"]
    """Architecture that the kernel is written for."""
    dtype: Literal["bf16", "fp16"]
    """Element type of query, key, value and output. Sums are kept in float32."""
    depth: Literal[64, 96, 128, 192, 256, 512, 576]
    """Head dimension of query and key; 512 needs cta_group: 2 or pack_heads, 576 is latent."""
    value_depth: Literal[64, 96, 128, 192, 256, 512] | Auto = "auto"
    """Head dimension of value and output; as depth when not given."""
    cta_group: Literal[1, 2] = 1
    """2: a cluster pair works on neighbouring query tiles and shares K and V by multicast."""
    BM: Annotated[int, Field(ge=64, le=192, multiple_of=64)] | Auto = "auto"
    """Query rows of a tile: 64 for each consumer warpgroup."""
    BN: Annotated[int, Field(ge=16, le=256, multiple_of=16)] | Auto = "auto"
    """Keys of a K/V block."""
    num_consumer_warpgroups: Annotated[int, Field(ge=1, le=3)] | Auto = "auto"
    """Warpgroups that compute, each on 64 query rows."""
    tile_heads: Literal[1, 2, 4, 8] = 1
    """Query heads of a key head whose rows share a tile: for few rows, fewer of them left empty."""
    num_kv_stages: Annotated[int, Field(ge=1, le=16)] | Auto = "auto"
    """Slots of the ring of K blocks, and of the ring of V blocks."""
    overlap: bool = True
    """Issue P.V in chunks of 16 keys during the exponentials, and the next Q.K before they end."""
    num_pv_chunks_in_flight: Annotated[int, Field(ge=0, le=16)] | Auto = "auto"
    """P.V chunks that may still run when the next Q.K is issued (only with overlap)."""
    ping_pong: bool | Auto = "auto"
    """Consumer warpgroups take turns to issue their matrix products (needs two of them)."""
    overlap_epilogue: bool | Auto = "auto"
    """Issue the next tile's first Q.K before this tile's output is written."""
    epilogue: Literal["auto", "direct", "tma_store"] = "auto"
    """Write the output straight from registers, or through shared memory by TMA."""
    scheduler: Literal["auto", "static", "dynamic"] = "auto"
    """Tiles in a fixed order, or assigned by an atomic counter, longest first."""
    rescale_threshold: Annotated[float, Field(ge=0, le=10)] = 8.0
    """Rescale the output only when a row's maximum grew by more than this, in powers of two."""
    registers: RegisterBudget | Auto = "auto"
    """Registers per thread of the producer and of each consumer."""
    pack_heads: bool = False
    """Rows of a tile are the query rows of all heads of a key head: for few rows and many keys."""
    packed_rows: Literal[8, 16, 64] | Auto = "auto"
    """Rows of a tile with pack_heads; 64 by wgmma, the others by mma.sync."""
    split_keys: SplitValue = "auto"
    """With pack_heads, how CTAs share a tile's keys: in even shares of all blocks, or {keys: N}."""

    @property
    def resolved_value_depth(self) -> int:
        """Columns of value and output."""
        return self.depth if self.value_depth == "auto" else self.value_depth

    @rule
    def _depths_go_together(self) -> None:
        if self.value_depth == 512 and self.depth not in (512, 576):
            raise ValueError(
                "value_depth: 512 is for depth 512, whose pair of CTAs divides columns, and for "
                f"576, whose keys have the values; depth is {self.depth}"
            )

    @rule
    def _tile_heads_are_of_prefill(self) -> None:
        if self.tile_heads > 1 and (self.pack_heads or self.depth >= 512):
            other = "pack_heads: true" if self.pack_heads else f"depth: {self.depth}"
            raise ValueError(f"tile_heads: {self.tile_heads} is not for {other}; drop tile_heads")

    @rule
    def _tile_matches_warpgroups(self) -> None:
        if isinstance(self.BM, int) and isinstance(self.num_consumer_warpgroups, int):
            rows = 64 * self.num_consumer_warpgroups
            if rows != self.BM:
                raise ValueError(
                    f"BM is {self.BM}, but num_consumer_warpgroups: "
                    f"{self.num_consumer_warpgroups} makes 64 * {self.num_consumer_warpgroups} = "
                    f"{rows} rows; drop one of the two keys"
                )


class RoleRegisters(Strict):
    """Registers per thread of each kind of warp after ``setmaxnreg``."""

    softmax: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    correction: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    other: Annotated[int, Field(ge=24, le=256, multiple_of=8)]
    """Of the warpgroup of the load warp and the MMA warp."""


class BlackwellAttentionConfig(AttentionKeys):
    """Attention forward on Blackwell (sm_100a, sm_103a)."""

    arch: Literal["sm_100a", "sm_103a"]
    """Architecture that the kernel is written for."""
    dtype: Literal["bf16", "fp16", "fp8_e4m3"]
    """Element type of query, key and value, and of the output unless out_dtype says otherwise."""
    depth: Literal[64, 96, 128, 192, 256, 512, 576]
    """Head dimension of query and key; 576 needs value_depth: 512, pack_heads, cta_group: 2."""
    value_depth: Literal[64, 96, 128, 192, 256, 512] | Auto = "auto"
    """Head dimension of value and output; as depth when not given."""
    out_dtype: Literal["auto", "bf16", "fp16"] = "auto"
    """Element type of the output: as dtype when not given, and bf16 for fp8."""
    cta_group: Literal[1, 2] = 1
    """2: a cluster pair multiplies together; each CTA loads half of every block of K and V."""
    BM: Literal[64, 128, 256] | Auto = "auto"
    """Query rows of a CTA: 128 for each of its two query tiles, or its one; 64 at depth 512."""
    BN: Annotated[int, Field(ge=32, le=256, multiple_of=32)] | Auto = "auto"
    """Keys of a K/V block."""
    num_kv_stages: Annotated[int, Field(ge=1, le=32)] | Auto = "auto"
    """Slots of the ring of K blocks, and of the ring of V blocks; of both in a fused ring."""
    kv_ring: Literal["auto", "separate", "fused"] = "auto"
    """K and V blocks in two rings, or alternating in one."""
    num_qk_stages: Annotated[int, Field(ge=1, le=8)] | Auto = "auto"
    """Parts along the depth in which Q and K arrive, each with barriers of its own."""
    num_pv_stages: Annotated[int, Field(ge=1, le=8)] | Auto = "auto"
    """Parts along the keys in which the softmax passes P to the MMA warp."""
    output_staging: Literal["auto", "query", "own"] = "auto"
    """Where the output passes through shared memory: the query's slot, or one of its own."""
    scheduler: Literal["auto", "static", "dynamic"] = "auto"
    """Tiles in a fixed order, or assigned by an atomic counter, longest first."""
    rescale_threshold: Annotated[float, Field(ge=0, le=10)] | Auto = "auto"
    """Rescale the output only when a row's maximum grew by more than this, in powers of two."""
    exp2_fma_share: Annotated[float, Field(ge=0, le=1, multiple_of=0.125)] | Auto = "auto"
    """Share of the exponentials that the FMA pipe computes, in eighths; the rest use ex2."""
    registers: RoleRegisters | Auto = "auto"
    """Registers per thread of each kind of warp."""
    pack_heads: bool = False
    """Rows of a tile are the query rows of all heads of a key head: for few rows and many keys."""
    packed_rows: Literal[8, 16] | Auto = "auto"
    """Rows of a tile with pack_heads."""
    split_keys: SplitValue = "auto"
    """With pack_heads, how CTAs share a tile's keys: in even shares of all blocks, or {keys: N}."""

    @property
    def resolved_value_depth(self) -> int:
        """Columns of value and output."""
        return self.depth if self.value_depth == "auto" else self.value_depth

    @property
    def resolved_out_dtype(self) -> str:
        """Element type of the output."""
        if self.out_dtype != "auto":
            return self.out_dtype
        return "bf16" if self.dtype == "fp8_e4m3" else self.dtype


Config = AttentionConfig | BlackwellAttentionConfig | HopperGemmConfig | BlackwellGemmConfig
"""Any config: the family chooses the model, then the architecture."""

Model = (
    type[AttentionConfig]
    | type[BlackwellAttentionConfig]
    | type[HopperGemmConfig]
    | type[BlackwellGemmConfig]
)
MODELS: tuple[Model, ...] = (
    AttentionConfig,
    BlackwellAttentionConfig,
    HopperGemmConfig,
    BlackwellGemmConfig,
)
"""The models of ``Config``."""


def family(model: Model) -> str:
    """Return the value of ``kernel`` that ``model`` takes."""
    value: str = get_args(model.model_fields["kernel"].annotation)[0]
    return value


def architectures(model: Model) -> tuple[str, ...]:
    """Return the values of ``arch`` that ``model`` takes."""
    return get_args(model.model_fields["arch"].annotation)


def models_of(data: Mapping[str, object]) -> Sequence[Model]:
    """Return the models of the family and architecture that ``data`` names.

    What names none, or one that does not exist, counts as naming all.
    """
    named = [model for model in MODELS if data.get("kernel") == family(model)] or MODELS
    return [model for model in named if data.get("arch") in architectures(model)] or named
