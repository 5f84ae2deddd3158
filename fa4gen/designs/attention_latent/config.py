"""The keys of latent attention on Hopper: most follow from its one tile."""

from __future__ import annotations

from typing import Literal

from fa4gen.designs.common.attention_config import HopperKeys, PackedKeys
from fa4gen.designs.common.decode_rules import HOPPER_PACKED_FIXED, PACKED_FIXED, UNSCALED
from fa4gen.strict import FixedKey


class LatentConfig(PackedKeys, HopperKeys):
    """Latent attention on Hopper (sm_90a): the values are the first columns of the keys."""

    WHAT = "depth: 576"
    FIXED = (
        FixedKey("cta_group", (1,), "CTAs share keys through partial results, not by multicast"),
        FixedKey("BN", ("auto",), "blocks of 64 keys are the warpgroups' in turn"),
        FixedKey("packed_rows", ("auto", 64), "both products are by wgmma"),
        FixedKey(
            "num_kv_stages", ("auto", 2), "a block for each warpgroup, and no room for a third"
        ),
        FixedKey("kv_dtype", ("auto",), "wgmma reads keys as they are"),
        UNSCALED,
        *PACKED_FIXED,
        *HOPPER_PACKED_FIXED,
    )

    depth: Literal[576]
    """Head dimension of query and key."""
    value_depth: Literal[512]
    """At depth 576 the values are the first 512 columns of the keys."""
