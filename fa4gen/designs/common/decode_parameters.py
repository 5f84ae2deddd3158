"""Parameters and words of kernels with packed heads and shares of the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.attention_parameters import (
    KEY_ROWS,
    MAP_TYPE,
    declared_parameters,
    descale_parameters,
    key_parameters,
    scale_parameter,
)
from fa4gen.designs.common.model import Parameter

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import PackedKeys
    from fa4gen.designs.common.choices import ChoiceLog

PARTIALS_PER_CTA: Final = 2
"""The partial results of a CTA: of the tiles that its share begins in and ends in."""
PROMOTION: Final = 128
"""Bytes that L2 fetches together. Measured: with 256 it fetches rows of the next head too where a
row has 128 bytes, and is 4 % slower where it has 256."""


def decode_parameters(config: PackedKeys, *, has_splits: bool) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order; ``has_splits``: of a fixed number of keys."""
    rows = [
        Parameter("key_map", MAP_TYPE, "key (batch, rows, heads, depth), any strides"),
        Parameter("value_map", MAP_TYPE, "value"),
        Parameter(
            "query", "const uint16* __restrict__", f"query, {config.dtype}, (batch, rows, heads)"
        ),
        Parameter("out", "uint16* __restrict__", f"output, {config.dtype}"),
    ]
    if config.lse:
        meaning = "log-sum-exp, (batch, query heads, query rows)"
        rows.append(Parameter("lse", "float* __restrict__", meaning))
    if config.resolved_kv_dtype != config.dtype:
        axis = "pages" if config.resolved_kv_scale == "page" else "sequences"
        rows += descale_parameters("key", "value", axis=axis)
    rows += declared_parameters(config)
    rows += key_parameters(config)
    meaning = "zeros, a counter of pieces for each CTA; zero again after the launch"
    if has_splits:
        meaning = "partial results, one a split; at first zeros, of which tickets are zero again"
        rows.append(Parameter("partials", "float*", meaning))
    else:
        rows += [
            Parameter("tickets", "int32*", meaning),
            Parameter("partials", "float*", f"partial results, {PARTIALS_PER_CTA} a CTA"),
        ]
    rows += [
        Parameter("batch", "int32", "batches"),
        Parameter("key_heads", "int32", "key heads"),
        Parameter("heads_per_key_head", "int32", "query heads that share a key head"),
        Parameter("query_rows", "int32", "query rows"),
        Parameter("key_rows", "int32", KEY_ROWS[config.resolved_keys]),
        Parameter("tiles_per_head", "int32", "tiles that cover the packed rows of a key head"),
    ]
    rows += [
        Parameter(f"{tensor}_{name}_stride", "int64", f"of the {words}'s {name}, in elements")
        for tensor, words in (("query", "query"), ("out", "output"))
        for name in ("batch", "row", "head")
    ]
    return (*rows, scale_parameter(config))


def note_shares(config: PackedKeys, log: ChoiceLog, who: str = "CTA") -> None:
    """Record how the keys are shared, and what follows from that; ``who`` takes a share."""
    split = config.split_keys
    if split == "auto":
        log.note("split_keys", "even", "auto", f"each {who} reads the same number of blocks")
    else:
        log.note("split_keys", f"{{keys: {split.keys}}}", "config")
    log.note("scheduler", "static", "derived", "shares of the line of blocks are even")
    log.note("epilogue", "direct", "derived", "the rows of a tile are few")
