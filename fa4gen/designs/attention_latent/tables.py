"""Roles, tensor map, parameters and summary of the latent kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.counts import counted
from fa4gen.designs.attention_latent.values import STAGES
from fa4gen.designs.common.decode_parameters import lines_of_features, split_words
from fa4gen.designs.common.latent_values import first_line
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.roles import WARPGROUP_WARPS
from fa4gen.designs.common.tensor_maps import clipped_tensors

if TYPE_CHECKING:
    from fa4gen.designs.attention_latent.values import LatentValues


def latent_roles(values: LatentValues) -> tuple[Role, Role]:
    """Return the warps that compute, then the warpgroup of the one that loads."""
    warps, columns = values.num_consumer_warps, values.config.resolved_value_depth // 2
    work = (
        "each warpgroup Q.K and softmax of every other block, and P.V of all blocks for "
        f"{columns} columns"
    )
    registers = values.registers
    clipped = clipped_tensors(values.config)
    loads = f"one {'warp' if clipped else 'thread'} issues all TMA loads"
    return (
        Role("consume", 0, warps, registers.consumer, work),
        Role("load", warps, WARPGROUP_WARPS, registers.producer, loads),
    )


def summarise(values: LatentValues) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    pairs = "pairs of CTAs: where tiles of a key head are paired, both load its keys for both"
    return (
        first_line(config),
        f"packed heads: tiles of {values.packed_rows} rows of a key head x {values.BN} keys, "
        f"{counted(values.num_parts, 'consumer warpgroup')}, "
        f"{counted(STAGES, 'stage')}",
        *([pairs] if values.cluster == 2 else []),
        f"split keys: {split_words(config, values.unit_keys)}",
        *lines_of_features(config),
    )
