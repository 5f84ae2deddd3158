"""What latent attention is on both architectures: the values are the first columns of the keys."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from fa4gen.designs.common.decode_parameters import PROMOTION, decode_parameters
from fa4gen.designs.common.refusal import Fault
from fa4gen.designs.common.tensor_maps import clipped_tensors, operand_maps
from fa4gen.designs.common.values import ELEMENT_BYTES, PANEL_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.config.schema import AttentionConfig, BlackwellAttentionConfig
    from fa4gen.designs.common.model import Parameter, TensorMapPlan

    LatentConfig = AttentionConfig | BlackwellAttentionConfig

VALUE_DEPTH: Final = 512
VALUE_PARAMETERS: Final = ("value_map", "value_page_rows")
"""Of decode kernels whose values are a tensor of their own."""


def not_latent(config: LatentConfig, more: Mapping[str, object]) -> Fault | None:
    """Return a fault for a config of depth 576 that does not ask for latent attention.

    ``more``: what its design needs beside.
    """
    if config.value_depth == VALUE_DEPTH and config.pack_heads:
        return None
    return Fault(
        kind="latent attention",
        message=f"depth: {config.depth} is for latent attention alone, whose values are the "
        f"first {VALUE_DEPTH} columns of the keys: it needs value_depth: {VALUE_DEPTH} and "
        "pack_heads: true",
        keys=("depth", "value_depth", "pack_heads"),
        remedies=(
            [{"value_depth": VALUE_DEPTH, "pack_heads": True, **more}],
            [{"depth": 256}],
        ),
    )


def latent_tensor_maps(config: LatentConfig, rows: int) -> tuple[TensorMapPlan, ...]:
    """Return the map of K, which has V: a panel of so many rows, of those in one place."""
    if config.page_size is not None:
        rows = math.gcd(rows, config.page_size)
    element_bytes = ELEMENT_BYTES[config.dtype]
    maps = operand_maps(
        {"key": (rows, 1)}, PANEL_BYTES // element_bytes, element_bytes, clipped_tensors(config)
    )
    return tuple(replace(row, l2_promotion=PROMOTION) for row in maps)


def latent_parameters(config: LatentConfig, *, has_splits: bool) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order: those of a decode kernel but for the values'."""
    rows = decode_parameters(config, has_splits=has_splits)
    return tuple(row for row in rows if row.name not in VALUE_PARAMETERS)
