"""Roles, tensor maps, parameters, named barriers and summary of the Hopper attention kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.values import ELEMENT_BYTES, WARPGROUP_ROWS
from fa4gen.designs.shared.model import Parameter, Role
from fa4gen.designs.shared.tensor_maps import operand_map

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm90.values import Values
    from fa4gen.designs.shared.model import TensorMapPlan
    from fa4gen.designs.shared.tensor_maps import Tensor

WARPGROUP_WARPS = 4


def attention_roles(values: Values) -> tuple[Role, ...]:
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
            work=f"Q.K, softmax, P.V and output of rows {WARPGROUP_ROWS * i} to "
            f"{WARPGROUP_ROWS * i + WARPGROUP_ROWS - 1}",
        )
        for i in range(values.num_consumer_warpgroups)
    ]
    return (loader, *consumers)


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
    block_box = (values.BN // 2, 1) if values.is_pair else (values.BN, panels)
    tile_box = (WARPGROUP_ROWS, panels)
    boxes: dict[Tensor, tuple[int, int]] = {
        "query": tile_box,
        "key": block_box,
        "value": block_box,
    }
    if values.epilogue == "tma_store":
        boxes["out"] = tile_box
    return tuple(
        operand_map(
            tensor,
            panel_columns=values.panel_columns,
            rows=rows,
            panels=box_panels,
            element_bytes=ELEMENT_BYTES,
        )
        for tensor, (rows, box_panels) in boxes.items()
    )


def attention_parameters(values: Values) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order."""
    return (
        *_tensor_parameters(values),
        *_problem_parameters(values),
        *_schedule_parameters(),
    )


def _tensor_parameters(values: Values) -> list[Parameter]:
    config = values.config
    map_type = "const __grid_constant__ TensorMap"
    rows = [
        Parameter("query_map", map_type, "query (batch, rows, heads, depth), any strides"),
        Parameter("key_map", map_type, "key"),
        Parameter("value_map", map_type, "value"),
    ]
    if values.epilogue == "tma_store":
        rows.append(Parameter("out_map", map_type, "output"))
    else:
        rows.append(Parameter("out", "uint16* __restrict__", f"output, {config.dtype}"))
    if config.lse:
        meaning = "log-sum-exp, (batch, query heads, query rows)"
        rows.append(Parameter("lse", "float* __restrict__", meaning))
    if values.scheduler == "dynamic":
        meaning = "two zeros; zero again after the launch"
        rows.append(Parameter("tile_counter", "int32* __restrict__", meaning))
    return rows


def _problem_parameters(values: Values) -> list[Parameter]:
    rows = [
        Parameter("batch", "int32", "batches"),
        Parameter("query_heads", "int32", "query heads"),
        Parameter("heads_per_key_head", "int32", "query heads that share a key head"),
        Parameter("query_rows", "int32", "query rows"),
        Parameter("key_rows", "int32", "key rows"),
    ]
    if values.epilogue == "direct":
        rows += [
            Parameter(f"out_{name}_stride", "int64", f"of the output's {name}, in elements")
            for name in ("batch", "row", "head")
        ]
    if values.config.softcap is None:
        rows.append(Parameter("softmax_scale_log2", "float", "softmax scale * log2(e), above zero"))
    else:
        rows.append(Parameter("softmax_scale", "float", "softmax scale, above zero"))
    return rows


def _schedule_parameters() -> list[Parameter]:
    return [
        Parameter(
            "num_short_tiles",
            "int32",
            "tiles a head that leave the last warpgroup out; 0 is always right",
        ),
        Parameter("tiles_per_head", "int32", "tiles that cover the query rows of a head"),
        Parameter("num_tiles", "int32", "tiles_per_head * query_heads * batch"),
        Parameter(
            "heads_per_group",
            "int32",
            "query heads whose keys and values stay in L2 together; 1 is always right",
        ),
    ]


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    output = "output from registers" if values.epilogue == "direct" else "output by TMA store"
    lines = [
        f"{config.dtype}, sums in float32; depth {config.depth}; mask {config.resolved_mask.words}",
        f"tiles of {values.tile_rows} query rows x {values.BN} keys, "
        f"{_count(values.num_consumer_warpgroups, 'consumer warpgroup')}, "
        f"{_count(values.num_kv_stages, 'stage')}",
        f"{values.scheduler} scheduler, {output}",
    ]
    if config.softcap is not None:
        lines.append(f"logits capped at {config.softcap}")
    if values.is_pair:
        lines.append("a pair of CTAs shares keys and values by multicast")
    return tuple(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
