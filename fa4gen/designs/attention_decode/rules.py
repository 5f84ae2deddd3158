"""The rules of decode kernels for configs, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_decode.divisions import (
    FP8_DIVISIONS,
    WIDE_DIVISIONS,
    division_of,
)
from fa4gen.designs.common.decode_model import MMA_ROWS, WGMMA_ROWS
from fa4gen.designs.common.decode_rules import (
    other_output,
    refused_expressions,
    unpacked,
    unsupported_batching,
)
from fa4gen.designs.common.page_scales import scales_without_pages
from fa4gen.designs.common.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_decode.config import DecodeConfig


def broken_rules(config: DecodeConfig) -> Iterator[Refusal]:
    """Yield the config's requests that do not go with packed heads."""
    yield from _element_types(config)
    yield from _scales(config)
    if config.split_keys != "auto":
        block, keys = division_of(config).block, config.split_keys.keys
        if keys % block:
            up = -(-keys // block) * block
            yield Refusal(
                kind="keys of a split",
                message=f"split_keys: {keys} keys are no multiple of the {block} of a block",
                keys=("split_keys",),
                remedies=([{"split_keys": {"keys": up}}], [{"split_keys": "auto"}]),
            )
    if config.resolved_value_depth != config.depth:
        yield Refusal(
            kind="value_depth of packed heads",
            message=f"value_depth: {config.resolved_value_depth} with pack_heads is not supported "
            f"yet: keys and values, of depth {config.depth}, take turns in one ring",
            keys=("value_depth", "pack_heads"),
            remedies=([{"value_depth": "auto"}], [unpacked(config)]),
        )
    if config.packed_rows == WGMMA_ROWS and config.depth not in WIDE_DIVISIONS:
        yield Refusal(
            kind="depth of wide tiles",
            message=f"packed_rows: {WGMMA_ROWS} at depth {config.depth} is not supported yet: "
            f"depths are {', '.join(map(str, WIDE_DIVISIONS))}",
            keys=("packed_rows", "depth"),
            remedies=([{"packed_rows": MMA_ROWS}],),
        )
    yield from unsupported_batching(config)
    if config.kv_scale == "page":
        words = "kv_scale: page"
        yield from refused_expressions(config, "kv_scale", words, {"kv_scale": "head"})
    if config.packed_rows == WGMMA_ROWS:
        words = f"packed_rows: {WGMMA_ROWS}"
        yield from refused_expressions(config, "packed_rows", words, {"packed_rows": MMA_ROWS})


def _scales(config: DecodeConfig) -> Iterator[Refusal]:
    if config.kv_scale == "auto":
        return
    if config.resolved_kv_dtype == config.dtype:
        yield Refusal(
            kind="scales of 16 bits",
            message=f"kv_scale: {config.kv_scale} is for kv_dtype: fp8_e4m3, but keys and values "
            f"are {config.dtype}, without scales",
            keys=("kv_scale", "kv_dtype"),
            remedies=([{"kv_dtype": "fp8_e4m3"}], [{"kv_scale": "auto"}]),
        )
    else:
        yield from scales_without_pages(config)


def _element_types(config: DecodeConfig) -> Iterator[Refusal]:
    unscaled = {"kv_dtype": "auto", **({} if config.kv_scale == "auto" else {"kv_scale": "auto"})}
    if config.resolved_kv_dtype != config.dtype and config.packed_rows == WGMMA_ROWS:
        yield Refusal(
            kind="type of keys of wide tiles",
            message=f"kv_dtype: {config.kv_dtype} with packed_rows: {WGMMA_ROWS} is not supported "
            "yet: wgmma reads keys from shared memory as they are",
            keys=("kv_dtype", "packed_rows"),
            remedies=(
                [unscaled],
                [{"packed_rows": 2 * MMA_ROWS}, {"packed_rows": MMA_ROWS}],
            ),
        )
    if config.resolved_kv_dtype != config.dtype and config.depth not in FP8_DIVISIONS:
        yield Refusal(
            kind="type of keys of depth",
            message=f"kv_dtype: {config.kv_dtype} at depth {config.depth} is not supported yet: "
            f"depths are {', '.join(map(str, FP8_DIVISIONS))}",
            keys=("kv_dtype", "depth"),
            remedies=([{"kv_dtype": "auto"}],),
        )
    yield from other_output(config, getattr(config, "out_dtype", "auto"))
