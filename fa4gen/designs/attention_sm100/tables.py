"""Roles, tensor maps, parameters and summary of the Blackwell attention kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.values import OUT_BYTES, TILE_ROWS
from fa4gen.designs.shared.model import Parameter, Role
from fa4gen.designs.shared.tensor_maps import operand_map

if TYPE_CHECKING:
    from fa4gen.config.schema import BlackwellAttentionConfig
    from fa4gen.designs.attention_sm100.values import Scheduler, Values
    from fa4gen.designs.shared.model import TensorMapPlan


def attention_roles(values: Values) -> tuple[Role, ...]:
    """Return softmax warpgroups, the correction, then the warps that issue."""
    split, tiles = values.registers, values.num_qo
    softmax = [
        Role(
            f"softmax {i}", 4 * i, 4, split.softmax,
            f"scores of query tile {i} to probabilities, row by row; log-sum-exp",
        )
        for i in range(tiles)
    ]  # fmt: skip
    first = 4 * tiles
    return (
        *softmax,
        Role(
            "correction", first, 4, split.correction,
            "rescales the outputs when a maximum grew; at the end stores them",
        ),
        Role("mma", first + 4, 1, split.other, "issues Q.K and P.V; has the tensor memory"),
        Role("load", first + 5, 1, split.other, "issues the TMA loads and hands out tiles"),
        Role("idle", first + 6, 2, split.other, "fill up the warpgroup"),
    )  # fmt: skip


def attention_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps: a box is what one TMA copy brings.

    Q: a part of a query tile; K: a part of a block; V: a block; O: a query tile. In a pair a CTA
    brings half of the keys of K, and half of the columns of V.
    """
    config = values.config
    parts = values.num_panels // values.num_qk_stages
    value_panels = values.value_depth // values.value_panel_columns // config.cta_group
    size = values.element_bytes
    return (
        operand_map(
            "query", panel_columns=values.panel_columns, rows=TILE_ROWS, panels=parts,
            element_bytes=size,
        ),
        operand_map(
            "key", panel_columns=values.panel_columns, rows=values.BN // config.cta_group,
            panels=parts, element_bytes=size,
        ),
        operand_map(
            "value", panel_columns=values.value_panel_columns, rows=values.BN, panels=value_panels,
            element_bytes=size,
        ),
        operand_map(
            "out", panel_columns=values.out_panel_columns, rows=TILE_ROWS,
            panels=values.value_depth // values.out_panel_columns, element_bytes=OUT_BYTES,
        ),
    )  # fmt: skip


def attention_parameters(
    config: BlackwellAttentionConfig, scheduler: Scheduler
) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order."""
    map_type = "const __grid_constant__ TensorMap"
    rows = [
        Parameter("query_map", map_type, "query (batch, rows, heads, depth), any strides"),
        Parameter("key_map", map_type, "key"),
        Parameter("value_map", map_type, "value"),
        Parameter("out_map", map_type, f"output, {config.resolved_out_dtype}"),
        Parameter("out", "uint16* __restrict__", "the same output, for rows that see no key"),
    ]
    if config.lse:
        meaning = "log-sum-exp, (batch, query heads, query rows)"
        rows.append(Parameter("lse", "float* __restrict__", meaning))
    if has_descales(config):
        rows += [
            Parameter(
                f"{name}_descale", "const float* __restrict__",
                f"scale of the {name}, (batch, key heads); 1 where null",
            )
            for name in ("query", "key", "value")
        ]  # fmt: skip
    if scheduler == "dynamic":
        meaning = "two zeros; zero again after the launch"
        rows.append(Parameter("tile_counter", "int32* __restrict__", meaning))
    rows += [
        Parameter("batch", "int32", "batches"),
        Parameter("query_heads", "int32", "query heads"),
        Parameter("heads_per_key_head", "int32", "query heads that share a key head"),
        Parameter("query_rows", "int32", "query rows"),
        Parameter("key_rows", "int32", "key rows"),
    ]
    rows += [
        Parameter(f"out_{name}_stride", "int64", f"of the output's {name}, in elements")
        for name in ("batch", "row", "head")
    ]
    if config.softcap is None:
        rows.append(Parameter("softmax_scale_log2", "float", "softmax scale * log2(e), above zero"))
    else:
        rows.append(Parameter("softmax_scale", "float", "softmax scale, above zero"))
    return (
        *rows,
        Parameter("tiles_per_head", "int32", "tiles that cover the query rows of a head"),
        Parameter("num_tiles", "int32", "tiles_per_head * query_heads * batch"),
        Parameter(
            "heads_per_group", "int32",
            "query heads whose keys and values stay in L2 together; 1 is always right",
        ),
    )  # fmt: skip


def has_descales(config: BlackwellAttentionConfig) -> bool:
    """Whether query, key and value come with scales: they do in fp8."""
    return config.dtype == "fp8_e4m3"


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
    if config.softcap is not None:
        lines.append(f"logits capped at {config.softcap}")
    if values.is_pair:
        lines.append("a pair of CTAs multiplies together, each with half of keys and values")
    return tuple(lines)
