"""The keys of attention forward on Hopper."""

from __future__ import annotations

from typing import Annotated, Literal

from fa4gen.designs.common.attention_config import (
    PREFILL_FIXED,
    HopperPrefillKeys,
    ListedKeys,
    OutputKeys,
)
from fa4gen.designs.common.values import ELEMENT_BYTES, MMA_K_BYTES
from fa4gen.strict import Auto, Field, rule


class HopperAttentionConfig(ListedKeys, OutputKeys, HopperPrefillKeys):
    """Attention forward on Hopper (sm_90a)."""

    WHAT = "pack_heads: false"
    FIXED = PREFILL_FIXED

    dtype: Literal["bf16", "fp16", "fp8_e4m3"]
    """Element type of query, key and value, and of the output unless out_dtype says otherwise."""
    depth: Literal[64, 96, 128, 192, 256]
    """Head dimension of query and key."""
    value_depth: Literal[64, 96, 128, 192, 256] | Auto = "auto"
    """Head dimension of value and output; as depth when not given."""
    cta_group: Literal[1, 2] = 1
    """2: a cluster pair works on neighbouring query tiles and shares K and V by multicast."""
    BM: Annotated[int, Field(ge=64, le=192, multiple_of=64)] | Auto = "auto"
    """Query rows of a tile: 64 for each consumer warpgroup."""
    BN: Annotated[int, Field(ge=16, le=256, multiple_of=16)] | Auto = "auto"
    """Keys of a K/V block."""
    tile_heads: Literal[1, 2, 4, 8] = 1
    """Query heads of a key head whose rows share a tile: for few rows, fewer of them left empty."""
    rescale_threshold: Annotated[float, Field(ge=0, le=10)] | Auto = "auto"
    """Rescale the output only when a row's maximum grew by more than this, in powers of two."""
    kv_scale: Literal["head", "page"] | Auto = "auto"
    """fp8: whether sequences or pages have a scale for each key head; head: sequences."""
    value_major: Literal["depth", "keys"] = "depth"
    """keys: the keys of each column of values are contiguous, so that fp8 is not transposed."""
    promote_every: Annotated[int, Field(ge=1, le=4096)] | Literal["auto", "never"] = "auto"
    """fp8: blocks of keys whose sums stay in the tensor cores, then float32; auto: 2048 keys."""
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

    @property
    def chunk_keys(self) -> int:
        """Keys of one wgmma of P.V."""
        return MMA_K_BYTES // ELEMENT_BYTES[self.dtype]

    @rule
    def _blocks_may_be_given(self) -> None:
        if self.given_blocks is not None:
            from fa4gen.designs.common.given_blocks import check_blocks  # of few configs

            check_blocks(self.given_blocks, self.resolved_mask, self.resolved_score, vars(self))

    @rule
    def _promotion_is_of_bytes(self) -> None:
        if self.dtype != "fp8_e4m3" and self.promote_every not in ("auto", "never"):
            raise ValueError(
                f"promote_every: {self.promote_every} is for dtype: fp8_e4m3, whose sums keep 13 "
                f"bits in the tensor cores; those of {self.dtype} are as good as float32"
            )

    @rule
    def _lines_of_keys_are_of_bytes(self) -> None:
        if self.value_major == "keys" and self.dtype != "fp8_e4m3":
            raise ValueError(
                f"value_major: keys is for dtype: fp8_e4m3; wgmma reads values of {self.dtype} "
                "with contiguous columns"
            )
        lengths = self.key_lengths or {self.batching, self.resolved_keys} != {"dense"}
        if self.value_major == "keys" and lengths:
            raise ValueError(
                "value_major: keys is for dense batches without lengths: TMA can end rows where "
                "a sequence ends; lines of keys always have the length of the tensor"
            )

    @rule
    def _output_goes_with_inputs(self) -> None:
        if self.dtype != "fp8_e4m3" and self.out_dtype not in ("auto", self.dtype):
            raise ValueError(
                f"out_dtype: {self.out_dtype} is for dtype: fp8_e4m3 on {self.arch}; the output of "
                f"{self.dtype} is {self.dtype}"
            )
