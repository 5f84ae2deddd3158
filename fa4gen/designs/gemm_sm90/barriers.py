"""The barrier table of the Hopper matrix product: each row is declared here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.barriers import barrier_row
from fa4gen.designs.gemm_sm90.values import WGMMA_ROWS

if TYPE_CHECKING:
    from fa4gen.designs.common.model import Barrier
    from fa4gen.designs.gemm_sm90.values import Values

CONSUMER_WARPS = 4
"""Warps of a consumer warpgroup. One lane of each arrives for it."""


def gemm_barriers(values: Values) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    rows = [*_input_rows(values)]
    for consumer in range(values.num_consumer_warpgroups):
        rows += _epi_rows(values, consumer)
    if values.is_split:
        rows += _sums_rows(values)
    if values.config.output_in_ring:
        rows.append(_ring_free_row(values))
    return tuple(rows)


def _ring_free_row(values: Values) -> Barrier:
    """Return the row of the ring that the output has left."""
    of_all = {1: "", 2: " of both CTAs"}.get(values.cta_group, " of all CTAs")
    return barrier_row(
        "ring_free",
        1,
        values.num_consumer_warpgroups * values.cta_group,
        "thread",
        f"each transfer warp{of_all}, once its stores have read the tile's panels",
        "the loader",
        "the output has left the ring, which may be filled for the next tile",
        cta=_cluster(values),
    )


def _cluster(values: Values) -> Literal["own", "pair", "cluster"]:
    """Return the CTAs with copies of a barrier that count, where CTAs share an operand."""
    if not values.is_shared:
        return "own"
    return "pair" if values.cta_group == 2 else "cluster"


def _sums_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Return the rows of the sums that a consumer gets from its like in the peer."""
    full = barrier_row(
        "sums_full",
        values.num_consumer_warpgroups,
        1,
        "store_bytes",
        "the consumer itself, then the bytes of the peer's sums",
        "the consumer",
        "the sums over the peer's part of k have arrived",
        transaction_bytes=values.sums_bytes,
        cta="pair",
    )
    empty = barrier_row(
        "sums_empty",
        values.num_consumer_warpgroups,
        CONSUMER_WARPS,
        "thread",
        "every warp of the peer's consumer, once it has read the sums",
        "the consumer",
        "the sums of the next tile that the peer writes may be sent",
        first_wait=1,
        cta="pair",
    )
    return full, empty


def _input_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Return full and empty of the ring of A and B.

    In a cluster, each CTA fills its part of what is shared in all that share it.
    """
    shares = values.is_shared
    cta = _cluster(values)
    part, others = ("half", "the peer") if values.cta_group == 2 else ("parts", "the others")
    all_ctas = "both CTAs" if values.cta_group == 2 else "all CTAs"
    readers = values.cluster_rows + values.cluster_columns - 1
    if values.shares_both:
        all_ctas = "all CTAs with tiles in its row or column"
    warps = CONSUMER_WARPS * (1 if values.ping_pong else values.num_consumer_warpgroups)
    every = "every warp of the tile's warpgroup" if values.ping_pong else "every consumer warp"
    full = barrier_row(
        "input_full",
        values.num_stages,
        1,
        "tma_bytes",
        "the loader, then the bytes of A and B"
        + " and of scales" * bool(values.operand_scales)
        + f", {part} of {values.shared_operands}'s by {others}" * shares,
        "the consumers of the tile",
        "a block of A and of B has landed in its slot",
        transaction_bytes=values.stage_bytes,
        cta=cta,
    )
    empty = barrier_row(
        "input_empty",
        values.num_stages,
        warps * readers,
        "thread",
        (f"{every} of {all_ctas}" if shares else every) + ", once wgmma has read the slot",
        "the loader",
        "a slot of A and B may be overwritten",
        first_wait=1,
        cta=cta,
    )
    return full, empty


def _epi_rows(values: Values, consumer: int) -> tuple[Barrier, Barrier]:
    """Return the rows of the output's slots of one consumer warpgroup: ready, then written."""
    loads = values.c.exists
    ready = barrier_row(
        f"epi{consumer}_ready",
        values.num_epi_stages,
        1,
        "tma_bytes" if loads else "thread",
        "the transfer warp, then the bytes of C" if loads else "the transfer warp",
        f"consumer {consumer}",
        "the residual is in its slot, which may be overwritten with the output"
        if values.c.is_matrix
        else "the residual has landed, and the output's slot is free"
        if loads
        else "the output's slot is free",
        transaction_bytes=residual_bytes(values),
    )
    written = barrier_row(
        f"epi{consumer}_written",
        values.num_epi_stages,
        CONSUMER_WARPS,
        "thread",
        f"each warp of consumer {consumer}",
        "the transfer warp",
        "a panel of the output is in its slot, and may be stored",
        first_wait=1,
    )
    return ready, written


def residual_rows(values: Values) -> int:
    """Return the rows whose elements of a C with one axis are loaded: slots are 128 bytes apart."""
    return -(-values.panel_rows // WGMMA_ROWS) * WGMMA_ROWS


def residual_bytes(values: Values) -> int:
    """Return the bytes of C that come with one panel of the output, at most."""
    columns = values.out_panel_columns
    if values.c.is_matrix:
        columns = min(columns, values.BN)
    rows = values.panel_rows if values.c.is_matrix else residual_rows(values)
    elements = values.c.elements(rows, columns)
    return elements * values.out_element_bytes
