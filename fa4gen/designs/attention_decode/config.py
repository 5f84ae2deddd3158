"""The keys of attention of few query rows and many keys, which differ little by architecture."""

from __future__ import annotations

from typing import Annotated, Literal

from fa4gen.designs.common.attention_config import BlackwellKeys, HopperKeys, PackedKeys
from fa4gen.designs.common.decode_rules import (
    BLACKWELL_PACKED_FIXED,
    HOPPER_PACKED_FIXED,
    PACKED_FIXED,
)
from fa4gen.strict import Auto, Field, FixedKey

DECODE_FIXED = (
    FixedKey("cta_group", (1,), "CTAs share keys through partial results, not by multicast"),
    FixedKey("BN", ("auto",), "a block is as many keys as the warps take at once"),
    *PACKED_FIXED,
)


class DecodeKeys(PackedKeys):
    """Keys of decode attention on both architectures."""

    depth: Literal[64, 96, 128, 192, 256, 512]
    """Head dimension of query, key, value and output."""
    value_depth: Literal[64, 96, 128, 192, 256, 512] | Auto = "auto"
    """Head dimension of value and output; no other than depth so far."""
    kv_dtype: Literal["fp8_e4m3"] | Auto = "auto"
    """Element type of key and value where it is not dtype: half the bytes."""
    kv_scale: Literal["head", "page"] | Auto = "auto"
    """With kv_dtype, whether sequences or pages have a scale for each key head; head: sequences."""
    num_kv_stages: Annotated[int, Field(ge=1, le=16)] | Auto = "auto"
    """Slots of the ring of blocks of keys and of values, which take turns."""


class HopperDecodeConfig(DecodeKeys, HopperKeys):
    """Attention forward of packed heads, with shares of the keys, on Hopper (sm_90a)."""

    WHAT = "pack_heads: true"
    FIXED = (*DECODE_FIXED, *HOPPER_PACKED_FIXED)

    packed_rows: Literal[8, 16, 64] | Auto = "auto"
    """Rows of a tile; 64 by wgmma, the others by mma.sync."""


class BlackwellDecodeConfig(DecodeKeys, BlackwellKeys):
    """Attention forward of packed heads, with shares of the keys (sm_100a, sm_103a)."""

    WHAT = "pack_heads: true"
    FIXED = (
        FixedKey("kv_ring", ("auto", "fused"), "keys and values take turns in one ring"),
        FixedKey("num_qk_stages", ("auto", 1), "a block of keys arrives whole"),
        FixedKey("num_pv_stages", ("auto", 1), "probabilities stay in the registers of a warp"),
        *DECODE_FIXED,
        *BLACKWELL_PACKED_FIXED,
    )

    dtype: Literal["bf16", "fp16"]
    """Element type of query and output, and of key and value unless kv_dtype says otherwise."""
    packed_rows: Literal[8, 16] | Auto = "auto"
    """Rows of a tile."""


DecodeConfig = HopperDecodeConfig | BlackwellDecodeConfig
