"""The keys of attention at depth 512 on Hopper: few, as a pair divides its work in one way."""

from __future__ import annotations

from typing import Literal

from fa4gen.designs.common.attention_config import (
    NO_PAGE_SCALES,
    PREFILL_FIXED,
    HopperKeys,
    HopperPrefillKeys,
)
from fa4gen.designs.common.listed import PAIRS
from fa4gen.strict import FixedKey


class HopperPairAttentionConfig(HopperPrefillKeys, HopperKeys):
    """Attention forward at depth 512 on Hopper (sm_90a)."""

    WHAT = "depth 512"
    FIXED = (
        FixedKey(
            "value_depth",
            ("auto", 512),
            "each CTA of the pair holds half of 512 columns of value and output",
        ),
        FixedKey("BM", ("auto", 128), "both CTAs of the pair work on the same 128 query rows"),
        FixedKey("tile_heads", (1,), "the rows of a tile are of one head"),
        FixedKey(
            "BN",
            ("auto", 128),
            "each CTA computes the scores of 64 keys and exchanges the probabilities with its peer",
        ),
        FixedKey(
            "num_kv_stages",
            ("auto", 8),
            "the keys of a block, like its values, are 8 parts of 8 KB: one trip round a ring of 8 "
            "slots, for which queries (128 KB) and the peer's probabilities (32 KB) leave room",
        ),
        FixedKey("out_dtype", ("auto",), "the output has the type of the queries"),
        FixedKey("value_major", ("depth",), "wgmma reads values of 16 bits row by row"),
        FixedKey("promote_every", ("auto", "never"), "sums of 16-bit elements keep 24 bits"),
        FixedKey("overlap", (True,), "the softmax always runs between the chunks of P.V"),
        FixedKey(
            "num_pv_chunks_in_flight",
            ("auto", 0),
            "all of P.V is complete before the next Q.K: the scores of a whole block are ahead "
            "anyway",
        ),
        FixedKey(
            "ping_pong",
            ("auto", False),
            "the warpgroups keep step through the ring that they share",
        ),
        FixedKey(
            "overlap_epilogue",
            ("auto", True),
            "the next tile's first Q.K and softmax always run before this tile's output is written",
        ),
        FixedKey(
            "epilogue",
            ("auto", "direct"),
            "the query's place, where the output would be staged, holds the next queries by then",
        ),
        FixedKey("blocks", ("walked",), PAIRS),
        *PREFILL_FIXED,
        NO_PAGE_SCALES,
    )

    depth: Literal[512]
    """Head dimension of query, key, value and output."""
    cta_group: Literal[2]
    """At depth 512 a pair of CTAs divides the columns, as one has no registers for an output."""
