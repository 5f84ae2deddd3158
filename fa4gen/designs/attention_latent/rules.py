"""What a config may say of a latent kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_latent.values import STAGES
from fa4gen.designs.shared.decode_model import WGMMA_ROWS
from fa4gen.designs.shared.decode_rules import DECODE_KEYS, unsupported_features
from fa4gen.designs.shared.fixed_keys import FixedKey, other_values
from fa4gen.designs.shared.latent import not_latent
from fa4gen.designs.shared.refusal import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.config.schema import AttentionConfig

LEAST_PAGE = 64
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
    yield from _spilling(config)


def _spilling(config: AttentionConfig) -> Iterator[Fault]:
    """Yield what takes more registers than there are, as ptxas 13.0 was measured to assign them."""
    paged = config.page_size is not None
    if config.page_size is not None and config.page_size < LEAST_PAGE:
        yield Fault(
            kind="small pages of latent attention",
            message=f"page_size: {config.page_size} spills registers of the loader at depth 576: "
            f"a page has {LEAST_PAGE} rows at least there",
            keys=("page_size",),
            remedies=([{"page_size": LEAST_PAGE}],),
        )
    if paged and config.split_keys != "auto":
        yield Fault(
            kind="splits of latent pages",
            message="split_keys of a fixed number of keys spills registers at depth 576 over pages",
            keys=("split_keys",),
            remedies=([{"split_keys": "auto"}],),
        )
    if config.resolved_mask.FIRST is not None and not paged and config.split_keys != "auto":
        yield Fault(
            kind="splits within a window of latent attention",
            message=f"split_keys of a fixed number of keys with mask: {config.resolved_mask.name} "
            "spills registers at depth 576",
            keys=("split_keys", "mask"),
            remedies=([{"split_keys": "auto"}], [{"mask": "causal"}]),
        )
    if config.resolved_mask.FIRST is not None and config.resolved_key_lengths:
        yield Fault(
            kind="window of latent attention",
            message=f"mask: {config.resolved_mask.name} spills registers at depth 576 where the "
            "lengths of the keys are read on the device",
            keys=("mask",),
            remedies=([{"mask": "causal"}],),
        )
    if config.sinks and not config.lse:
        yield Fault(
            kind="sinks of latent attention",
            message="sinks without lse spills registers at depth 576",
            keys=("lse", "sinks"),
            remedies=([{"lse": True}], [{"sinks": False}]),
        )
