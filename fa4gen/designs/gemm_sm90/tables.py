"""Roles, tensor maps and summary of the Hopper matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_maps import gemm_tensor_maps as maps_of
from fa4gen.designs.common.model import Role
from fa4gen.designs.common.roles import consumer_roles
from fa4gen.designs.common.values import PANEL_BYTES
from fa4gen.designs.gemm_sm90.barriers import residual_rows
from fa4gen.designs.gemm_sm90.values import WGMMA_ROWS

if TYPE_CHECKING:
    from fa4gen.designs.common.model import TensorMapPlan
    from fa4gen.designs.gemm_sm90.values import Values


def gemm_roles(values: Values) -> tuple[Role, ...]:
    """Return the loader, a transfer warp for each consumer, and the consumers."""
    producer = values.registers.producer
    residual = values.c.exists
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
    consumers = consumer_roles(
        values.registers, values.num_consumer_warpgroups, lambda i: _consumer_work(values, i)
    )
    load = Role("load", 0, 1, producer, "one thread issues the TMA loads of A and B")
    return (load, *transfers, *consumers)


def _consumer_work(values: Values, consumer: int) -> str:
    if values.ping_pong:
        which = "second" if values.num_consumer_warpgroups == 2 else "next"
        return f"the products and the output of every {which} tile"
    rows = values.warpgroup_rows
    first = rows * consumer
    what = "columns" if values.config.swap_operands else "rows"
    return f"the products and the output of {what} {first} to {first + rows - 1}"


def gemm_tensor_maps(values: Values) -> tuple[TensorMapPlan, ...]:
    """Return the maps of A, B, C and the output: boxes of 128 bytes by a number of lines.

    In a cluster, each CTA loads its part of the lines of a shared operand.
    """
    return maps_of(
        values,
        panel_bytes=(PANEL_BYTES, PANEL_BYTES),
        a_lines=values.brought_a_lines,
        b_lines=values.brought_b_lines,
        out_rows=values.panel_rows,
        residual_rows=residual_rows(values),
        out_columns=values.out_panel_columns,
        last_columns=values.last_panel_columns,
    )


def summarise(values: Values) -> tuple[str, ...]:
    """Return the resolved parameters in words."""
    config = values.config
    consumers = values.num_consumer_warpgroups
    lines = [
        f"{config.dtype}, A {config.a_major}-major, B {config.b_major}-major, sums in float32; "
        f"output {config.resolved_out_dtype}, {values.c.words}",
        *(
            ["scales of " + ", ".join(row.words for row in values.operand_scales)]
            if values.operand_scales
            else []
        ),
        f"tiles of {values.BM} x {values.BN}, {values.BK} along k a stage, {values.num_stages} "
        f"stages; {consumers} consumer warpgroup{'s' * (consumers > 1)}"
        + (", a tile each in turn" if values.ping_pong else ""),
    ]
    if config.swap_operands:
        read = "; B is read once" if values.BM <= WGMMA_ROWS else ""
        lines.append(f"columns of B are the rows of wgmma, rows of A its columns{read}")
    if values.is_split:
        lines.append("two CTAs divide k of a tile; in turn, one adds the other's sums and stores")
    if config.output_in_ring:
        lines.append("the output passes through the ring of A and B, when all of it has been read")
    if config.activation is not None:
        lines.append(f"activation {config.activation}")
    if values.is_shared:
        ctas = {2: "a pair of", 4: "a cluster of four"}.get(values.cta_group, "a cluster of eight")
        tiles = "tiles side by side" if values.cluster_columns > 1 else "row tiles"
        if values.shares_both:
            tiles = f"tiles in two rows of {values.cluster_columns}"
        shared = values.shared_operands
        turns = ", a block each in turn" if values.shares_in_turns else ""
        lines.append(
            f"{ctas} CTAs works on neighbouring {tiles} and shares {shared} by multicast{turns}"
        )
    return tuple(lines)
