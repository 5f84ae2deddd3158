"""Roles, tensor maps, parameters and summary of the kernel at depth 512."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.values import (
    BLOCK_KEYS,
    CHUNK_KEYS,
    CONSUMER_WARPGROUPS,
    OWN_COLUMNS,
    OWN_KEYS,
    PANEL_COLUMNS,
    TILE_ROWS,
    WARPGROUP_ROWS,
)
from fa4gen.designs.common.attention_parameters import attention_parameters, out_pointer
from fa4gen.designs.common.model import Parameter
from fa4gen.designs.common.roles import consumer_roles, loader_role
from fa4gen.designs.common.tensor_maps import (
    clipped_panels_map,
    clipped_tensors,
    operand_maps,
)

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.values import Values
    from fa4gen.designs.common.model import Role, TensorMapPlan
    from fa4gen.designs.common.tensor_maps import Tensor


def pair_roles(values: Values) -> tuple[Role, ...]:
    """Return one loader warpgroup, then the consumers."""
    rows = WARPGROUP_ROWS
    consumers = consumer_roles(
        values.registers,
        CONSUMER_WARPGROUPS,
        lambda i: (
            f"rows {rows * i} to {rows * (i + 1) - 1}: Q.K and softmax of half of the keys, "
            "P.V and output of half of the columns"
        ),
    )
    return (loader_role(values.registers, values.config), *consumers)


def pair_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps of Q and K, a panel a box, and of V, whose box has half of the columns.

    A box of K has no more rows than a page.
    """
    clipped = clipped_tensors(values.config)
    boxes: dict[Tensor, tuple[int, int]] = {
        "query": (TILE_ROWS, 1),
        "key": (values.config.rows_of_box(OWN_KEYS), 1),
        "value": (CHUNK_KEYS, OWN_COLUMNS // PANEL_COLUMNS),
    }
    maps = operand_maps(boxes, PANEL_COLUMNS, values.element_bytes, clipped)
    if "value" not in clipped:
        return maps
    rows, panels = boxes["value"]
    value = clipped_panels_map(
        "value",
        panel_columns=PANEL_COLUMNS,
        rows=rows,
        panels=panels,
        element_bytes=values.element_bytes,
    )
    return (*maps[:-1], value)


def pair_parameters(values: Values) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order."""
    out = out_pointer(f"output, {values.config.dtype}")
    rows = attention_parameters(values.config, out, scheduler=values.scheduler)
    if not values.config.key_source.clipped:
        return rows
    steps = "in steps of the map's places"
    return (
        *rows,
        Parameter("value_row_steps", "int32", f"from one row of the values to the next, {steps}"),
        Parameter("value_head_steps", "int32", f"from one head of the values to the next, {steps}"),
    )


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    lines = [
        f"{config.dtype}, sums in float32; depth {config.depth}; mask {config.resolved_mask.words}",
        f"a pair of CTAs takes {TILE_ROWS} query rows through blocks of {BLOCK_KEYS} keys",
        f"each CTA computes the scores of {OWN_KEYS} keys of a block, and {OWN_COLUMNS} columns of "
        "the output",
        f"{values.scheduler} scheduler, output from registers",
    ]
    if config.resolved_score.words:
        lines.append(config.resolved_score.words)
    if config.has_tile_lengths:
        lines.append(f"batching {config.batching}; keys {config.resolved_keys}")
    return tuple(lines)
