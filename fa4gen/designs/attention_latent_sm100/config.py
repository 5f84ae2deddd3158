"""The keys of latent attention on Blackwell: most follow from its one tile."""

from __future__ import annotations

from typing import Literal

from fa4gen.designs.common.attention_config import BlackwellKeys, PackedKeys
from fa4gen.designs.common.decode_rules import BLACKWELL_PACKED_FIXED, PACKED_FIXED, UNSCALED
from fa4gen.strict import FixedKey


class LatentPairConfig(PackedKeys, BlackwellKeys):
    """Latent attention on Blackwell (sm_100a, sm_103a): the values are columns of the keys."""

    WHAT = "depth: 576"
    FIXED = (
        FixedKey("BN", ("auto", 64), "two blocks of 64 keys fit shared memory with the query"),
        FixedKey(
            "kv_ring", ("auto", "separate"), "a CTA's keys and its value columns differ in size"
        ),
        FixedKey("num_qk_stages", ("auto", 3), "keys arrive in parts of three panels"),
        FixedKey("num_pv_stages", ("auto", 1), "probabilities of a block are handed over together"),
        FixedKey("packed_rows", ("auto",), "a product over a pair has 128 rows"),
        FixedKey("num_kv_stages", ("auto", 2), "no more blocks fit beside the query"),
        FixedKey("kv_dtype", ("auto",), "tcgen05.mma reads keys as they are"),
        UNSCALED,
        *PACKED_FIXED,
        *BLACKWELL_PACKED_FIXED,
    )

    dtype: Literal["bf16", "fp16"]
    """Element type of query, key, value and output: probabilities are a panel of 16 bits."""
    depth: Literal[576]
    """Head dimension of query and key."""
    value_depth: Literal[512]
    """At depth 576 the values are the first 512 columns of the keys."""
    cta_group: Literal[2]
    """A pair has the 128 rows of a product, as an output of 64 fills half of tensor memory."""
