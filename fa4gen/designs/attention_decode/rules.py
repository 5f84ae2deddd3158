"""What a config may say of a decode kernel: many keys of other designs have no meaning here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.config.schema import PACKED_HEADS_KEYS
from fa4gen.designs.attention_decode.values import (
    DIVISIONS,
    MMA_ROWS,
    WGMMA_ROWS,
    WIDE_DIVISIONS,
    division_of,
)
from fa4gen.designs.shared.fixed_keys import FixedKey, other_values
from fa4gen.designs.shared.refusal import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_decode.values import DecodeConfig
    from fa4gen.designs.shared.refusal import Changes

_FIXED = (
    FixedKey("cta_group", (1,), "CTAs share keys through partial results, not by multicast"),
    FixedKey("BM", ("auto",), "the rows of a tile are packed_rows"),
    FixedKey("BN", ("auto",), "a block is as many keys as the warps take at once"),
    FixedKey(
        "num_consumer_warpgroups", ("auto",), "warps compute on keys of their own, by mma.sync"
    ),
    FixedKey("overlap", (True,), "the warps overlap each other"),
    FixedKey("num_pv_chunks_in_flight", ("auto", 0), "mma.sync is synchronous"),
    FixedKey("ping_pong", ("auto", False), "the warps run freely"),
    FixedKey("overlap_epilogue", ("auto", False), "only loads run on from tile to tile"),
    FixedKey("epilogue", ("auto", "direct"), "the rows of a tile are few, and of several heads"),
    FixedKey("scheduler", ("auto", "static"), "every CTA has an even share of all blocks"),
    FixedKey("registers", ("auto",), "all threads have as many"),
    FixedKey("kv_ring", ("auto", "fused"), "keys and values take turns in one ring"),
    FixedKey("num_qk_stages", ("auto", 1), "a block of keys arrives whole"),
    FixedKey("num_pv_stages", ("auto", 1), "probabilities stay in the registers of a warp"),
    FixedKey("output_staging", ("auto",), "the output goes straight to memory"),
    FixedKey("exp2_fma_share", ("auto", 0), "few rows have few exponentials: ex2 computes all"),
)
"""Of Hopper's and Blackwell's keys."""


def broken_rules(config: DecodeConfig) -> Iterator[Fault]:
    """Yield every key with a value that does not go with packed heads."""
    fixed = [rule for rule in _FIXED if rule.key in type(config).model_fields]
    yield from other_values(config, "pack_heads: true", fixed)
    yield from _element_types(config)
    if config.depth in DIVISIONS and config.split_keys != "auto":
        division = division_of(config)
        block, keys = division.parts * division.keys, config.split_keys.keys
        if keys % block:
            up = -(-keys // block) * block
            yield Fault(
                kind="keys of a split",
                message=f"split_keys: {keys} keys are no multiple of the {block} of a block",
                keys=("split_keys",),
                remedies=([{"split_keys": {"keys": up}}], [{"split_keys": "auto"}]),
            )
    if config.resolved_value_depth != config.depth:
        yield Fault(
            kind="value_depth of packed heads",
            message=f"value_depth: {config.resolved_value_depth} with pack_heads is not supported "
            f"yet: keys and values, of depth {config.depth}, take turns in one ring",
            keys=("value_depth", "pack_heads"),
            remedies=([{"value_depth": "auto"}], [_unpacked(config)]),
        )
    if config.depth not in DIVISIONS:
        depths = ", ".join(map(str, DIVISIONS))
        yield Fault(
            kind="depth of packed heads",
            message=f"depth: {config.depth} with pack_heads is not supported yet: a warp would "
            f"hold {config.depth} columns of the output; depths are {depths}",
            keys=("depth", "pack_heads"),
            remedies=([{**_unpacked(config), "cta_group": 2}],),
        )
    if config.packed_rows == WGMMA_ROWS and config.depth not in WIDE_DIVISIONS:
        yield Fault(
            kind="depth of wide tiles",
            message=f"packed_rows: {WGMMA_ROWS} at depth {config.depth} is not supported yet: "
            f"depths are {', '.join(map(str, WIDE_DIVISIONS))}",
            keys=("packed_rows", "depth"),
            remedies=([{"packed_rows": MMA_ROWS}],),
        )
    if config.batching != "dense":
        yield Fault(
            kind="ragged queries of packed heads",
            message=f"batching: {config.batching} with pack_heads is not supported yet: every "
            "sequence has as many query rows",
            keys=("batching", "pack_heads"),
            remedies=(
                [{"batching": "dense"}, {"batching": "dense", "keys": "auto"}],
                [_unpacked(config)],
            ),
        )
    if config.score is not None or config.declared_tensors:
        key = "score" if config.score is not None else "parameters"
        yield Fault(
            kind="expressions of packed heads",
            message=f"{key} with pack_heads is not supported yet: rows of a tile are of several "
            "heads",
            keys=(key, "pack_heads"),
            remedies=([_unpacked(config)],),
        )
    if config.resolved_mask.TEST is not None:
        yield Fault(
            kind="tested mask of packed heads",
            message=f"mask: {config.resolved_mask.name} hides keys between the first and the last "
            "that a row sees, which pack_heads does not support yet",
            keys=("mask", "pack_heads"),
            remedies=([_unpacked(config)],),
        )


def _unpacked(config: DecodeConfig) -> Changes:
    """Return the changes that make it another design's: without keys that only this one reads."""
    given = [key for key in PACKED_HEADS_KEYS if getattr(config, key) != "auto"]
    return {"pack_heads": False, **dict.fromkeys(given, "auto")}


def _element_types(config: DecodeConfig) -> Iterator[Fault]:
    if config.dtype == "fp8_e4m3":
        yield Fault(
            kind="fp8 of packed heads",
            message="dtype: fp8_e4m3 with pack_heads is not supported yet: mma.sync multiplies "
            "bf16 or fp16",
            keys=("dtype", "pack_heads"),
            remedies=([{"dtype": "bf16"}], [_unpacked(config)]),
        )
        return
    if config.resolved_kv_dtype != config.dtype and config.packed_rows == WGMMA_ROWS:
        yield Fault(
            kind="type of keys of wide tiles",
            message=f"kv_dtype: {config.kv_dtype} with packed_rows: {WGMMA_ROWS} is not supported "
            "yet: wgmma reads keys from shared memory as they are",
            keys=("kv_dtype", "packed_rows"),
            remedies=([{"kv_dtype": "auto"}], [{"packed_rows": 2 * MMA_ROWS}]),
        )
    out = getattr(config, "out_dtype", "auto")
    if out not in ("auto", config.dtype):
        yield Fault(
            kind="output of packed heads",
            message=f"out_dtype: {out} with pack_heads is not supported yet: the output is "
            f"{config.dtype}, as the query",
            keys=("out_dtype", "pack_heads"),
            remedies=([{"out_dtype": "auto"}], [_unpacked(config)]),
        )
