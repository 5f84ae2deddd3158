"""Roles, tensor maps and summary of the Hopper matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.gemm_sm90.values import WGMMA_ROWS
from fa4gen.designs.shared.model import Role, TensorMapPlan

if TYPE_CHECKING:
    from typing import Literal

    from fa4gen.designs.gemm_sm90.values import Values
    from fa4gen.designs.shared.model import Swizzle

WARPGROUP_WARPS = 4


def gemm_roles(values: Values) -> tuple[Role, ...]:
    """Return the loader, a transfer warp for each consumer, and the consumers."""
    producer = values.registers.producer
    residual = values.config.residual != "none"
    carries = "loads the residual ahead of, and stores the output of," if residual else "stores"
    transfers = [
        Role(
            name=f"transfer {i}",
            first_warp=1 + i,
            num_warps=1,
            registers=producer,
            work=f"one thread {carries} {'consumer' if residual else 'the output of consumer'} {i}",
        )
        for i in range(values.num_consumer_warpgroups)
    ]
    rows = values.warpgroup_rows
    consumers = [
        Role(
            name=f"consume {i}",
            first_warp=WARPGROUP_WARPS * (1 + i),
            num_warps=WARPGROUP_WARPS,
            registers=values.registers.consumer,
            work="the products and the output of every "
            f"{'second' if values.num_consumer_warpgroups == 2 else 'next'} tile"
            if values.ping_pong
            else f"the products and the output of rows {rows * i} to {rows * i + rows - 1}",
        )
        for i in range(values.num_consumer_warpgroups)
    ]
    load = Role("load", 0, 1, producer, "one thread issues the TMA loads of A and B")
    return (load, *transfers, *consumers)


def gemm_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps of A, B, C and the output: boxes of 128 bytes by so many lines.

    In a pair, each CTA brings half of B: half of its lines.
    """
    config = values.config
    b_lines = values.BN if config.b_major == "k" else values.BK
    maps = [
        _map(
            "a",
            ("k", "m", "batch") if config.a_major == "k" else ("m", "k", "batch"),
            values.panel_columns,
            values.BM if config.a_major == "k" else values.BK,
            values.element_bytes,
        ),
        _map(
            "b",
            ("k", "n", "batch") if config.b_major == "k" else ("n", "k", "batch"),
            values.panel_columns,
            b_lines // values.cta_group,
            values.element_bytes,
        ),
    ]
    columns, bytes_each = values.out_panel_columns, values.out_element_bytes
    if config.residual == "matrix":
        maps.append(_map("c", ("n", "m", "batch"), columns, WGMMA_ROWS, bytes_each))
    elif config.residual == "row":
        maps.append(
            TensorMapPlan(
                name="c",
                parameter="c_map",
                tensor="c",
                dims=("n", "batch"),
                box=(columns, 1),
                swizzle=0,
                box_bytes=columns * bytes_each,
                direction="load",
            )
        )
    return (*maps, _map("out", ("n", "m", "batch"), columns, WGMMA_ROWS, bytes_each))


def _map(
    tensor: Literal["a", "b", "c", "out"],
    dims: tuple[str, ...],
    columns: int,
    lines: int,
    element_bytes: int,
) -> TensorMapPlan:
    swizzle: Swizzle = 128
    return TensorMapPlan(
        name=tensor,
        parameter=f"{tensor}_map",
        tensor=tensor,
        dims=dims,
        box=(columns, lines, 1),
        swizzle=swizzle,
        box_bytes=columns * lines * element_bytes,
        direction="store" if tensor == "out" else "load",
    )


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    consumers = values.num_consumer_warpgroups
    residual = {
        "none": "no residual",
        "matrix": "a matrix as residual",
        "row": "a row as residual",
    }[config.residual]
    lines = [
        f"{config.dtype}, A {config.a_major}-major, B {config.b_major}-major, sums in float32; "
        f"output {config.resolved_out_dtype}, {residual}",
        f"tiles of {values.BM} x {values.BN}, {values.BK} along k a stage, {values.num_stages} "
        f"stages; {consumers} consumer warpgroup{'s' * (consumers > 1)}"
        + (", a tile each in turn" if values.ping_pong else ""),
    ]
    if config.activation is not None:
        lines.append(f"activation {config.activation}")
    if values.is_pair:
        lines.append("a pair of CTAs works on neighbouring row tiles and shares B by multicast")
    return tuple(lines)
