"""Latent attention on both architectures: the values are the first columns of the keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.decode_parameters import PROMOTION, decode_parameters
from fa4gen.designs.common.tensor_maps import clipped_tensors, operand_maps
from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import PackedKeys
    from fa4gen.designs.common.model import Parameter, TensorMapPlan

VALUE_PARAMETERS: Final = ("value_map", "value_page_rows")
"""The parameters of decode kernels with values in a tensor of their own."""


def latent_tensor_maps(config: PackedKeys, rows: int) -> tuple[TensorMapPlan, ...]:
    """Return the map of K, which has V: a panel of ``rows`` rows, of those in one place."""
    rows = config.rows_of_box(rows)
    element_bytes = ELEMENT_BYTES[config.dtype]
    maps = operand_maps(
        {"key": (rows, 1)}, PANEL_BYTES // element_bytes, element_bytes, clipped_tensors(config)
    )
    return tuple(replace(row, l2_promotion=PROMOTION) for row in maps)


def latent_parameters(config: PackedKeys, *, has_splits: bool) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order: those of a decode kernel but for the values'."""
    rows = decode_parameters(config, has_splits=has_splits)
    return tuple(row for row in rows if row.name not in VALUE_PARAMETERS)
