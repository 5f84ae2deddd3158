"""The keys of attention at depth 512 on Blackwell: a pair divides its work in one way."""

from __future__ import annotations

from typing import Literal

from fa4gen.designs.common.attention_config import (
    NO_PAGE_SCALES,
    PREFILL_FIXED,
    BlackwellPrefillKeys,
)
from fa4gen.designs.common.listed import PAIRS
from fa4gen.strict import FixedKey


class BlackwellPairAttentionConfig(BlackwellPrefillKeys):
    """Attention forward at depth 512 on Blackwell (sm_100a, sm_103a)."""

    WHAT = "depth 512"
    FIXED = (
        FixedKey(
            "value_depth", ("auto", 512), "the two halves of the output have 256 columns each"
        ),
        FixedKey("BM", ("auto", 64), "each CTA has half of the rows of a product of 128"),
        FixedKey(
            "BN",
            ("auto", 256),
            "two buffers of scores for 256 keys fill the other half of tensor memory",
        ),
        FixedKey("kv_ring", ("auto", "fused"), "parts of keys and values have one size"),
        FixedKey("num_qk_stages", ("auto", 4), "a slot holds 128 columns of 128 keys"),
        FixedKey("num_pv_stages", ("auto", 2), "a slot holds 128 columns of 128 keys"),
        FixedKey(
            "output_staging",
            ("auto", "query"),
            "shared memory has no room beside queries, P and slots",
        ),
        FixedKey("blocks", ("walked",), PAIRS),
        *PREFILL_FIXED,
        NO_PAGE_SCALES,
    )

    depth: Literal[512]
    """Head dimension of query, key, value and output."""
    cta_group: Literal[2]
    """At depth 512 an output of 64 rows fills half of tensor memory: a pair shares the keys."""
