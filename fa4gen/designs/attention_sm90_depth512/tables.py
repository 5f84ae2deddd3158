"""Roles, tensor maps, parameters and summary of the kernel at depth 512."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.values import (
    BLOCK_KEYS,
    CHUNK_KEYS,
    CONSUMER_WARPGROUPS,
    ELEMENT_BYTES,
    OWN_COLUMNS,
    OWN_KEYS,
    PANEL_COLUMNS,
    TILE_ROWS,
    WARPGROUP_ROWS,
)
from fa4gen.designs.shared.model import Parameter, Role
from fa4gen.designs.shared.tensor_maps import operand_map

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90_depth512.values import Values
    from fa4gen.designs.shared.model import TensorMapPlan
    from fa4gen.designs.shared.tensor_maps import Tensor

WARPGROUP_WARPS = 4


def pair_roles(values: Values) -> tuple[Role, ...]:
    """Return one loader warpgroup, then the consumers."""
    loader = Role(
        name="load",
        first_warp=0,
        num_warps=WARPGROUP_WARPS,
        registers=values.registers.producer,
        work="one thread issues all TMA loads and hands out tiles",
    )
    consumers = [
        Role(
            name=f"consume {i}",
            first_warp=WARPGROUP_WARPS * (1 + i),
            num_warps=WARPGROUP_WARPS,
            registers=values.registers.consumer,
            work=f"rows {WARPGROUP_ROWS * i} to {WARPGROUP_ROWS * (i + 1) - 1}: Q.K and softmax of "
            "half of the keys, P.V and output of half of the columns",
        )
        for i in range(CONSUMER_WARPGROUPS)
    ]
    return (loader, *consumers)


def pair_tensor_maps() -> tuple[TensorMapPlan, ...]:
    """Return the maps of Q and K, a panel a box, and of V, whose box has half of the columns."""
    boxes: dict[Tensor, tuple[int, int]] = {
        "query": (TILE_ROWS, 1),
        "key": (OWN_KEYS, 1),
        "value": (CHUNK_KEYS, OWN_COLUMNS // PANEL_COLUMNS),
    }
    return tuple(
        operand_map(
            tensor,
            panel_columns=PANEL_COLUMNS,
            rows=rows,
            panels=panels,
            element_bytes=ELEMENT_BYTES,
        )
        for tensor, (rows, panels) in boxes.items()
    )


def pair_parameters(values: Values) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order."""
    config = values.config
    map_type = "const __grid_constant__ TensorMap"
    rows = [
        Parameter("query_map", map_type, "query (batch, rows, heads, depth), any strides"),
        Parameter("key_map", map_type, "key"),
        Parameter("value_map", map_type, "value"),
        Parameter("out", "uint16* __restrict__", f"output, {config.dtype}"),
    ]
    if config.lse:
        meaning = "log-sum-exp, (batch, query heads, query rows)"
        rows.append(Parameter("lse", "float* __restrict__", meaning))
    if values.scheduler == "dynamic":
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
    rows += [
        Parameter("tiles_per_head", "int32", "tiles that cover the query rows of a head"),
        Parameter("num_tiles", "int32", "tiles_per_head * query_heads * batch"),
        Parameter(
            "heads_per_group",
            "int32",
            "query heads whose keys and values stay in L2 together; 1 is always right",
        ),
    ]
    return tuple(rows)


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
    if config.softcap is not None:
        lines.append(f"logits capped at {config.softcap}")
    return tuple(lines)
