"""Roles, tensor maps, parameters and summary of the decode kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from fa4gen.counts import counted
from fa4gen.designs.common.decode_parameters import PROMOTION, lines_of_features, split_words
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.tensor_maps import clipped_tensors, operand_maps

if TYPE_CHECKING:
    from fa4gen.designs.attention_decode.values import Values
    from fa4gen.designs.common.model import TensorMapPlan
    from fa4gen.designs.common.tensor_maps import Tensor

NARROW_PROMOTION: Final = 64
"""The L2 promotion, in bytes, where a row has fewer bytes."""


def decode_roles(values: Values) -> tuple[Role, Role]:
    """Return the warps that compute, then the one that loads."""
    warps, keys = values.num_consumer_warps, values.part_keys
    work = (
        f"each {values.part_words} does Q.K, softmax and P.V of {keys} keys of a block; then they "
        "join their outputs"
    )
    return (
        Role("consume", 0, warps, values.registers, work),
        Role("load", warps, 1, values.registers, "issues all TMA loads"),
    )


def decode_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps of K and V: a unit, or of clipped rows a panel of what is in one place."""
    rows = values.config.rows_of_box(values.unit_keys)
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


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    types: str = config.dtype
    if values.has_descales:
        types += f", keys and values {config.resolved_kv_dtype}"
    if values.has_page_scales:
        types += " with a scale for each page and key head"
    return (
        f"{types}, sums in float32; depth {config.depth}; mask {config.resolved_mask.words}",
        f"packed heads: tiles of {values.packed_rows} rows of a key head x {values.BN} keys, "
        f"{counted(values.num_consumer_warps, 'consumer warp')}, "
        f"{counted(values.num_kv_stages, 'stage')}",
        f"split keys: {split_words(config, values.unit_keys)}",
        *lines_of_features(config),
    )
