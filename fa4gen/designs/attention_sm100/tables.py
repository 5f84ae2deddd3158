"""Roles, tensor maps, parameters and summary of the Blackwell attention kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.values import TILE_ROWS
from fa4gen.designs.common.blackwell_values import OUT_BYTES
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.tensor_maps import clipped_map, clipped_tensors, operand_map

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100.values import Values
    from fa4gen.designs.common.model import TensorMapPlan
    from fa4gen.designs.common.tensor_maps import Tensor


def attention_roles(values: Values) -> tuple[Role, ...]:
    """Return softmax warpgroups, the correction, then the warps that issue."""
    split, tiles = values.registers, values.num_qo
    softmax = [
        Role(
            f"softmax {i}", 4 * i, 4, split.softmax,
            f"scores of query tile {i} to probabilities; log-sum-exp",
        )
        for i in range(tiles)
    ]  # fmt: skip
    first = 4 * tiles
    return (
        *softmax,
        Role(
            "correction", first, 4, split.correction,
            "rescales the outputs when a maximum grew; stores them",
        ),
        Role("mma", first + 4, 1, split.other, "issues Q.K and P.V; allocates tensor memory"),
        Role("load", first + 5, 1, split.other, "issues the TMA loads and hands out tiles"),
        Role("idle", first + 6, 2, split.other, "fill up the warpgroup"),
    )  # fmt: skip


def attention_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps: a box is what one TMA copy brings.

    Q: a part of a query tile; K: a part of a block; V: a block; O: a query tile. In a pair a CTA
    brings half of the keys of K, and half of the columns of V. Of clipped tensors a box is a panel
    of that; of pages, the rows in it that one page has.
    """
    config = values.config
    parts = values.num_panels // values.num_qk_stages
    value_panels = values.value_depth // values.value_panel_columns // config.cta_group
    clipped = clipped_tensors(config)

    def keys(rows: int) -> int:
        return config.rows_of_box(rows)

    def of(tensor: Tensor, columns: int, rows: int, panels: int, size: int) -> TensorMapPlan:
        if tensor in clipped:
            return clipped_map(tensor, panel_columns=columns, rows=rows, element_bytes=size)
        return operand_map(
            tensor, panel_columns=columns, rows=rows, panels=panels, element_bytes=size
        )

    size, out_columns = values.element_bytes, values.out_panel_columns
    return (
        of("query", values.panel_columns, TILE_ROWS, parts, size),
        of("key", values.panel_columns, keys(values.BN // config.cta_group), parts, size),
        of("value", values.value_panel_columns, keys(values.BN), value_panels, size),
        of("out", out_columns, TILE_ROWS, values.value_depth // out_columns, OUT_BYTES),
    )


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    depth = f"depth {values.depth}"
    if values.value_depth != values.depth:
        depth += f", of values {values.value_depth}"
    output = "" if config.resolved_out_dtype == config.dtype else f" to {config.resolved_out_dtype}"
    tiles = (
        "two query tiles" if values.num_qo == 2 else "one query tile, two score buffers"
    ) + f" of {TILE_ROWS} rows x {values.BN} keys"
    rings = (
        f"a ring of {values.num_kv_stages} slots for keys and values"
        if values.kv_ring == "fused"
        else f"rings of {values.num_kv_stages} key and value slots"
    )
    lines = [
        f"{config.dtype}{output}, sums in float32; {depth}; mask {config.resolved_mask.words}",
        f"{tiles}; {rings}",
        f"{values.scheduler} scheduler; {values.exp2_fma_share:.1%} of exp2 on the FMA pipe",
    ]
    if config.resolved_score.words:
        lines.append(config.resolved_score.words)
    if config.has_tile_lengths:
        lines.append(f"batching {config.batching}; keys {config.resolved_keys}")
    if values.is_pair:
        lines.append("a pair of CTAs multiplies together, each with half of keys and values")
    return tuple(lines)
