"""The common part of both designs of attention on Blackwell: rows, regions and parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.designs.common.attention_parameters import attention_parameters, out_map, out_pointer
from fa4gen.designs.common.barriers import TILE_SLOTS, barrier_row, tile_rows
from fa4gen.designs.common.model import SharedRegion
from fa4gen.designs.common.shared_memory import tile_bytes, tile_lengths

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_config import AttentionKeys
    from fa4gen.designs.common.blackwell_values import BlackwellAttentionValues
    from fa4gen.designs.common.model import Barrier, Parameter

SCALES_HOLD = "What the softmax sends to the correction: a factor for each row, then 1 / sum"


def kernel_parameters(values: BlackwellAttentionValues[Any]) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order."""
    return attention_parameters(
        values.config,
        out_map(f"output, {values.config.resolved_out_dtype}"),
        out_pointer("the same output, for rows that see no key"),
        scheduler=values.scheduler,
        has_descales=values.has_descales,
    )


def scale_rows(
    full: str, empty: str, slots: int, threads: int, writers: str
) -> tuple[Barrier, Barrier]:
    """Return the rows of the rows' factors, from the softmax to the correction and back."""
    return (
        barrier_row(
            full,
            slots,
            threads,
            "thread",
            writers,
            "the correction",
            "each row's factor is in shared memory",
        ),
        barrier_row(
            empty,
            slots,
            threads,
            "thread",
            "every thread of the correction",
            "the softmax",
            "the factors have been read",
            first_wait=1,
        ),
    )


def other_role_tiles(warps: int, *, shared: bool) -> tuple[Barrier, Barrier]:
    """Return the rows of tiles that pass to ``warps`` warps of the other roles."""
    return tile_rows(
        warps,
        shared=shared,
        readers="every other role",
        reader_warps="every warp of the other roles",
        both="in both CTAs",
    )


def tile_and_tensor_memory(config: AttentionKeys) -> tuple[SharedRegion, SharedRegion]:
    """Return the slots that tiles pass through, and the word for the allocation's address."""
    tiles = "Tiles on their way from the loader to the other roles: first row, head, batch"
    tiles += tile_lengths(config)
    return (
        SharedRegion("tile", 0, TILE_SLOTS * tile_bytes(config), 16, TILE_SLOTS, tiles),
        SharedRegion("tensor_memory", 0, 4, 4, 1, "Address of the allocated tensor memory"),
    )
