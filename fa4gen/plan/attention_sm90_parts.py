"""The tables of a Hopper attention plan: barriers, roles, tensor maps, parameters, summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.plan.model import Barrier, Parameter, Role, TensorMapPlan
from fa4gen.plan.tensor_maps import operand_map

if TYPE_CHECKING:
    from fa4gen.config.schema import AttentionConfig
    from fa4gen.plan.roles import RegisterSplit

CONSUMER_WARPS = 4


def attention_barriers(
    config: AttentionConfig,
    *,
    warpgroups: int,
    stages: int,
    tile_slots: int,
    query_bytes: int,
    block_bytes: int,
    epilogue: str,
    scheduler: str,
) -> tuple[Barrier, ...]:
    """The barrier table, offsets still zero. Sizes in bytes."""
    pair = config.cta_group == 2
    warps = CONSUMER_WARPS * warpgroups
    releases = warps * config.cta_group
    every_warp = "every consumer warp of both CTAs" if pair else "every consumer warp"
    shared_tiles = pair and scheduler == "dynamic"
    rows = [
        Barrier(
            "query_full", warpgroups, 1, "tma_bytes", "the loader, then the bytes of Q",
            "the warpgroup", "a warpgroup's query rows have landed", 0, query_bytes, "own", 0,
        ),
        Barrier(
            "query_empty", warpgroups,
            1 if epilogue == "tma_store" else CONSUMER_WARPS, "thread",
            "the thread whose TMA store has read the slot" if epilogue == "tma_store"
            else "each warp of the warpgroup, after its last Q.K",
            "the loader", "a warpgroup's query slot may be overwritten", 1, 0, "own", 0,
        ),
    ]  # fmt: skip
    for ring, product in (("key", "Q.K"), ("value", "P.V")):
        rows += [
            Barrier(
                f"{ring}_full", stages, 1, "tma_bytes",
                f"the loader, then the bytes of the block{', half of them from the peer' if pair else ''}",
                "every consumer", f"a block of {ring}s has landed in its slot", 0, block_bytes,
                "pair" if pair else "own", 0,
            ),
            Barrier(
                f"{ring}_empty", stages, releases, "thread", f"{every_warp}, once {product} has read the block",
                "the loader", f"a {ring} slot may be overwritten", 1, 0, "pair" if pair else "own", 0,
            ),
        ]  # fmt: skip
    rows += [
        Barrier(
            "tile_full", tile_slots, 1, "thread",
            "the leader's loader" if shared_tiles else "the loader",
            "every consumer" + (", the peer's loader" if shared_tiles else ""),
            "the next tile is in its slot", 0, 0, "pair" if shared_tiles else "own", 0,
        ),
        Barrier(
            "tile_empty", tile_slots, releases + 1 if shared_tiles else warps, "thread",
            f"{every_warp}, and the peer's loader" if shared_tiles else "every consumer warp",
            "the leader's loader" if shared_tiles else "the loader",
            "the tile has been read", 1, 0, "leader" if shared_tiles else "own", 0,
        ),
    ]  # fmt: skip
    return tuple(rows)


def attention_roles(warpgroups: int, registers: RegisterSplit) -> tuple[Role, ...]:
    """One loader warpgroup, then the consumers."""
    loader = Role(
        "load", 0, 4, registers.producer, "one thread issues all TMA loads and hands out tiles"
    )
    consumers = tuple(
        Role(
            f"consume {i}", 4 * (1 + i), 4, registers.consumer,
            f"Q.K, softmax, P.V and output of rows {64 * i} to {64 * i + 63}",
        )
        for i in range(warpgroups)
    )  # fmt: skip
    return (loader, *consumers)


def attention_tensor_maps(
    config: AttentionConfig, block: int, panel_columns: int, element_bytes: int, epilogue: str
) -> tuple[TensorMapPlan, ...]:
    """Maps of Q (64 rows), K and V (a block, or half a panel of it in a pair), and O if stored by TMA."""
    panels = config.depth // panel_columns
    kv_rows, kv_panels = (block, panels) if config.cta_group == 1 else (block // 2, 1)

    query = operand_map(
        "query", panel_columns=panel_columns, rows=64, panels=panels, element_bytes=element_bytes
    )
    key = operand_map(
        "key",
        panel_columns=panel_columns,
        rows=kv_rows,
        panels=kv_panels,
        element_bytes=element_bytes,
    )
    value = operand_map(
        "value",
        panel_columns=panel_columns,
        rows=kv_rows,
        panels=kv_panels,
        element_bytes=element_bytes,
    )
    if epilogue == "direct":
        return query, key, value
    out = operand_map(
        "out", panel_columns=panel_columns, rows=64, panels=panels, element_bytes=element_bytes
    )
    return query, key, value, out


def attention_parameters(
    config: AttentionConfig, epilogue: str, scheduler: str
) -> tuple[Parameter, ...]:
    """The kernel's parameters in order."""
    map_type = "const __grid_constant__ TensorMap"
    rows = [
        Parameter("query_map", map_type, "query (batch, rows, heads, depth), any strides"),
        Parameter("key_map", map_type, "key"),
        Parameter("value_map", map_type, "value"),
    ]
    if epilogue == "tma_store":
        rows.append(Parameter("out_map", map_type, "output"))
    else:
        rows.append(Parameter("out", "uint16* __restrict__", f"output, {config.dtype}"))
    if config.lse:
        rows.append(
            Parameter("lse", "float* __restrict__", "log-sum-exp, (batch, query heads, query rows)")
        )
    if scheduler == "dynamic":
        rows.append(
            Parameter(
                "tile_counter", "int32* __restrict__", "two zeros; zero again after the launch"
            )
        )
    rows += [
        Parameter("batch", "int32", "batches"),
        Parameter("query_heads", "int32", "query heads"),
        Parameter("heads_per_key_head", "int32", "query heads that share a key head"),
        Parameter("query_rows", "int32", "query rows"),
        Parameter("key_rows", "int32", "key rows"),
    ]
    if epilogue == "direct":
        rows += [
            Parameter(f"out_{name}_stride", "int64", f"of the output's {name}, in elements")
            for name in ("batch", "row", "head")
        ]
    if config.softcap is None:
        rows.append(Parameter("softmax_scale_log2", "float", "softmax scale * log2(e), above zero"))
    else:
        rows.append(Parameter("softmax_scale", "float", "softmax scale, above zero"))
    rows += [
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
    return tuple(rows)


def summarise(
    config: AttentionConfig,
    rows: int,
    block: int,
    warpgroups: int,
    stages: int,
    scheduler: str,
    epilogue: str,
) -> tuple[str, ...]:
    """The resolved parameters in words."""
    mask = (
        config.mask
        if isinstance(config.mask, str)
        else "sliding window {} before, {} behind".format(*config.window)
    )
    lines = [
        f"{config.dtype}, sums in float32; depth {config.depth}; mask {mask}",
        f"tiles of {rows} query rows x {block} keys, {warpgroups} consumer warpgroups, {stages} stages",
        f"{scheduler} scheduler, {'output from registers' if epilogue == 'direct' else 'output by TMA store'}",
    ]
    if config.softcap is not None:
        lines.append(f"logits capped at {config.softcap}")
    if config.cta_group == 2:
        lines.append("a pair of CTAs shares keys and values by multicast")
    return tuple(lines)
