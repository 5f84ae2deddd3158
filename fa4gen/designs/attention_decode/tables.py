"""Roles, tensor maps, parameters and summary of the decode kernel."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from fa4gen.counts import counted
from fa4gen.designs.attention_decode.model import PARTIALS_PER_CTA
from fa4gen.designs.shared.attention_parameters import (
    KEY_ROWS,
    MAP_TYPE,
    descale_parameters,
    key_parameters,
)
from fa4gen.designs.shared.model import Parameter, Role
from fa4gen.designs.shared.tensor_maps import clipped_tensors, operand_maps

if TYPE_CHECKING:
    from fa4gen.designs.attention_decode.values import Values
    from fa4gen.designs.shared.model import TensorMapPlan
    from fa4gen.designs.shared.tensor_maps import Tensor

PROMOTION: Final = 128
"""Bytes that L2 fetches together. Measured: with 256 it fetches rows of the next head too where a
row has 128 bytes, and is 4 % slower where it has 256."""
NARROW_PROMOTION: Final = 64
"""The same where a row has fewer bytes."""


def decode_roles(values: Values) -> tuple[Role, Role]:
    """Return the warps that compute, then the one that loads."""
    warps, keys = values.num_consumer_warps, values.part_keys
    work = (
        f"each {values.part_words} Q.K, softmax and P.V of {keys} keys of every block; the output "
        "together"
    )
    return (
        Role("consume", 0, warps, values.registers, work),
        Role("load", warps, 1, values.registers, "issues all TMA loads"),
    )


def decode_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps of K and V: a unit, or of clipped rows a panel of what is in one place."""
    rows = values.unit_keys
    if values.config.page_size is not None:
        rows = math.gcd(rows, values.config.page_size)
    boxes: dict[Tensor, tuple[int, int]] = {
        "key": (rows, values.num_panels),
        "value": (rows, values.num_panels),
    }
    maps = operand_maps(
        boxes, values.panel_columns, values.kv_element_bytes, clipped_tensors(values.config)
    )
    row_bytes = values.config.depth * values.kv_element_bytes
    promotion: Literal[64, 128] = PROMOTION if row_bytes >= PROMOTION else NARROW_PROMOTION
    return tuple(replace(row, l2_promotion=promotion) for row in maps)


def decode_parameters(values: Values) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order."""
    config = values.config
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
    if values.has_descales:
        rows += descale_parameters("key", "value", whose="sequences")
    if config.sinks:
        meaning = "logit of each query head's sink, one more term of the softmax's sum"
        rows.append(Parameter("sinks", "const float* __restrict__", meaning))
    rows += key_parameters(config)
    meaning = "zeros, a counter of pieces for each CTA; zero again after the launch"
    if values.split_blocks:
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
    if config.resolved_score.FUNCTION:
        rows.append(Parameter("softmax_scale", "float", "softmax scale, above zero"))
    else:
        rows.append(Parameter("softmax_scale_log2", "float", "softmax scale * log2(e), above zero"))
    return tuple(rows)


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    types: str = config.dtype
    if values.has_descales:
        types += f", keys and values {config.resolved_kv_dtype}"
    lines = [
        f"{types}, sums in float32; depth {config.depth}; mask {config.resolved_mask.words}",
        f"packed heads: tiles of {values.packed_rows} rows of a key head x {values.BN} keys, "
        f"{counted(values.num_consumer_warps, 'consumer warp')}, "
        f"{counted(values.num_kv_stages, 'stage')}",
        f"split keys: {_splits(values)}, combined by {_combiners(values)}",
    ]
    if config.resolved_score.words:
        lines.append(config.resolved_score.words)
    if config.has_tile_lengths:
        lines.append(f"batching {config.batching}; keys {config.resolved_keys}")
    return tuple(lines)


def _combiners(values: Values) -> str:
    if values.split_blocks:
        return "the last CTA of a tile"
    return "all CTAs of a tile, a slice each; a cooperative launch"


def _splits(values: Values) -> str:
    if values.split_blocks:
        return f"{values.split_blocks * values.BN} keys each"
    return f"even shares, in units of {values.unit_keys} keys"
