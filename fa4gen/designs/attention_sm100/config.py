"""The keys of attention forward on Blackwell."""

from __future__ import annotations

from typing import Annotated, Literal

from fa4gen.designs.common.attention_config import (
    NO_PAGE_SCALES,
    PREFILL_FIXED,
    BlackwellPrefillKeys,
    ListedKeys,
)
from fa4gen.strict import Auto, Field


class BlackwellAttentionConfig(ListedKeys, BlackwellPrefillKeys):
    """Attention forward on Blackwell (sm_100a, sm_103a)."""

    WHAT = "pack_heads: false"
    FIXED = (*PREFILL_FIXED, NO_PAGE_SCALES)

    depth: Literal[64, 96, 128, 192, 256]
    """Head dimension of query and key."""
    value_depth: Literal[64, 96, 128, 192, 256, 512] | Auto = "auto"
    """Head dimension of value and output; as depth when not given."""
    cta_group: Literal[1, 2] = 1
    """2: a cluster pair multiplies together; each CTA loads half of every block of K and V."""
    BM: Literal[128, 256] | Auto = "auto"
    """Query rows of a CTA: 128 for each of its two query tiles, or its one."""
    BN: Annotated[int, Field(ge=32, le=256, multiple_of=32)] | Auto = "auto"
    """Keys of a K/V block."""
    blocks: Literal["walked", "listed"] = "walked"
    """listed: only blocks of keys in lists that come with the call, for masks with tensors."""
    kv_ring: Literal["auto", "separate", "fused"] = "auto"
    """K and V blocks in two rings, or alternating in one."""
    num_qk_stages: Annotated[int, Field(ge=1, le=8)] | Auto = "auto"
    """Parts along the depth in which Q and K arrive, each with barriers of its own."""
    num_pv_stages: Annotated[int, Field(ge=1, le=8)] | Auto = "auto"
    """Parts along the keys in which the softmax passes P to the MMA warp."""
    output_staging: Literal["auto", "query", "own"] = "auto"
    """The place of the output in shared memory: the query's slot, or one of its own."""
