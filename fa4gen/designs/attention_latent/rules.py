"""What a config may say of a latent kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent.values import STAGES
from fa4gen.designs.common.decode_model import WGMMA_ROWS
from fa4gen.designs.common.decode_rules import DECODE_KEYS, unsupported_features
from fa4gen.designs.common.fixed_keys import FixedKey, other_values
from fa4gen.designs.common.latent import not_latent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import AttentionConfig
    from fa4gen.designs.common.refusal import Fault

_FIXED = (
    *(rule for rule in DECODE_KEYS if rule.key not in ("BM", "BN")),
    FixedKey("BM", ("auto",), "the rows of a tile are packed_rows"),
    FixedKey("BN", ("auto",), "blocks of 64 keys are the warpgroups' in turn"),
    FixedKey("packed_rows", ("auto", WGMMA_ROWS), "both products are by wgmma"),
    FixedKey(
        "num_kv_stages", ("auto", STAGES), "a block for each warpgroup, and no room for a third"
    ),
)


def broken_rules(config: AttentionConfig) -> Iterator[Fault]:
    """Yield every key with a value that does not go with latent attention."""
    if fault := not_latent(config, {}):
        yield fault
        return
    of_keys = FixedKey("kv_dtype", ("auto", config.dtype), "wgmma reads keys as they are")
    unscaled = FixedKey("kv_scale", ("auto",), "keys and values of 16 bits have no scales")
    fixed = [rule for rule in (*_FIXED, of_keys, unscaled) if rule.key in type(config).model_fields]
    yield from other_values(config, "depth: 576", fixed)
    yield from unsupported_features(config)
