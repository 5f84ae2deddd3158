"""Roles, tensor maps, parameters, named barriers and summary of the Hopper attention kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.counts import counted
from fa4gen.designs.attention_sm90.values import WARPGROUP_ROWS
from fa4gen.designs.common.attention_parameters import attention_parameters, out_map, out_pointer
from fa4gen.designs.common.roles import consumer_roles, loader_role
from fa4gen.designs.common.tensor_maps import clipped_tensors, operand_maps

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.values import Values
    from fa4gen.designs.common.model import Parameter, Role, TensorMapPlan
    from fa4gen.designs.common.tensor_maps import Tensor


def attention_roles(values: Values) -> tuple[Role, ...]:
    """Return one loader warpgroup, then the consumers."""
    rows = WARPGROUP_ROWS
    consumers = consumer_roles(
        values.registers,
        values.num_consumer_warpgroups,
        lambda i: f"Q.K, softmax, P.V and output of rows {rows * i} to {rows * i + rows - 1}",
    )
    return (loader_role(values.registers, values.config), *consumers)


def attention_named_barriers(values: Values) -> tuple[tuple[str, int], ...]:
    """Return the hardware's named barriers: name and first id, one for each warpgroup.

    Id 0 is __syncthreads.
    """
    names = []
    if values.ping_pong:
        names.append("turn_barrier")
    if values.epilogue == "tma_store":
        names.append("epilogue_barrier")
    step = values.num_consumer_warpgroups
    return tuple((name, 1 + i * step) for i, name in enumerate(names))


def attention_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps of Q (64 rows), K and V (a block), and of O if stored by TMA.

    In a pair, each CTA brings half of the block's rows, a panel at a time.
    """
    panels = values.num_panels
    block_rows = values.BN // 2 if values.is_pair else values.BN
    block_rows = values.config.rows_of_box(block_rows)
    boxes: dict[Tensor, tuple[int, int]] = {
        "query": (WARPGROUP_ROWS, panels),
        "key": (block_rows, 1 if values.is_pair else panels),
        "value": (block_rows, 1 if values.is_pair else values.num_value_panels),
    }
    if values.epilogue == "tma_store":
        boxes["out"] = (WARPGROUP_ROWS, values.num_value_panels)
    return operand_maps(
        boxes,
        values.panel_columns,
        values.element_bytes,
        clipped_tensors(values.config),
        tile_heads=values.config.tile_heads,
    )


def kernel_parameters(values: Values) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order."""
    staged = values.epilogue == "tma_store"
    out = out_map("output") if staged else out_pointer(f"output, {values.config.dtype}")
    return attention_parameters(
        values.config,
        out,
        scheduler=values.scheduler,
        has_strides=not staged,
        has_short_tiles=True,
        tile_heads=values.config.tile_heads,
    )


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    output = "output from registers" if values.epilogue == "direct" else "output by TMA store"
    depth = f"depth {config.depth}"
    if values.value_depth != config.depth:
        depth += f", of values {values.value_depth}"
    lines = [
        f"{config.dtype}, sums in float32; {depth}; mask {config.resolved_mask.words}",
        f"tiles of {values.BM} query rows x {values.BN} keys, "
        f"{counted(values.num_consumer_warpgroups, 'consumer warpgroup')}, "
        f"{counted(values.num_kv_stages, 'stage')}",
        f"{values.scheduler} scheduler, {output}",
    ]
    if config.resolved_score.words:
        lines.append(config.resolved_score.words)
    if config.has_tile_lengths:
        lines.append(f"batching {config.batching}; keys {config.resolved_keys}")
    if config.tile_heads > 1:
        lines.append(f"the rows of {config.tile_heads} query heads of a key head share a tile")
    if values.is_pair:
        lines.append("a pair of CTAs shares keys and values by multicast")
    return tuple(lines)
