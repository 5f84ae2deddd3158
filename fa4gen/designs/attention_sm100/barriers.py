"""The barrier table of the Blackwell attention kernel: each row is declared here, once.

A row with a slot for each query tile holds tile 0's first; with parts, those of tile 0 go before
those of tile 1. In a pair, rows that the leader's MMA warp waits for count the arrivals of both
CTAs, and its commits arrive on the rows of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.values import TILE_ROWS
from fa4gen.designs.common.barriers import barrier_row
from fa4gen.designs.common.blackwell_attention import other_role_tiles, scale_rows

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100.values import Values
    from fa4gen.designs.common.model import ArriveHow, Barrier

SCORE_BUFFERS = 2


def attention_barriers(values: Values) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    return (
        *_query_rows(values),
        *_ring_rows(values),
        *_score_rows(values),
        *_scale_rows(values),
        *_output_rows(values),
        *_tile_rows(values),
    )


def _query_rows(values: Values) -> tuple[Barrier, Barrier]:
    parts = values.num_qk_stages
    staged = values.output_staging == "query"
    pair = values.is_pair
    full = barrier_row(
        "query_full",
        values.num_qo * parts,
        1,
        "tma_bytes",
        "the loader, then the bytes of a part of Q" + (" in both CTAs" if pair else ""),
        "the MMA warp",
        "a part of a query tile has landed",
        transaction_bytes=values.query_bytes // parts * values.config.cta_group,
        cta="leader" if pair else "own",
    )
    empty = barrier_row(
        "query_empty",
        values.num_qo,
        1,
        "thread" if staged else _commit(values),
        "the thread whose TMA store has read the slot"
        if staged
        else "commit of the tile's last Q.K",
        "the loader",
        "a query slot may be overwritten",
        first_wait=1,
    )
    return full, empty


def _commit(values: Values) -> ArriveHow:
    return "multicast_commit" if values.is_pair else "mma_commit"


def _ring_rows(values: Values) -> list[Barrier]:
    if values.kv_ring == "fused":
        same = values.key_bytes == values.value_bytes
        return [*_ring(values, "kv", "block", 1, values.key_bytes if same else 0)]
    return [
        *_ring(values, "key", "part of a key block", values.num_qk_stages, values.key_bytes),
        *_ring(values, "value", "block of values", 1, values.value_bytes),
    ]


def _ring(
    values: Values, name: str, what: str, parts: int, slot_bytes: int
) -> tuple[Barrier, Barrier]:
    pair = values.is_pair
    full = barrier_row(
        f"{name}_full",
        values.num_kv_stages * parts,
        1,
        "tma_bytes",
        f"the loader, then the bytes of the {what}" + (", half of them the peer's" if pair else ""),
        "the MMA warp",
        f"a {what} has landed",
        transaction_bytes=slot_bytes // parts * values.config.cta_group,
        cta="leader" if pair else "own",
    )
    empty = barrier_row(
        f"{name}_empty",
        values.num_kv_stages * parts,
        1,
        _commit(values),
        f"commit of the last product that reads the {what}",
        "the loader",
        f"the slot of a {what} may be overwritten",
        first_wait=1,
    )
    return full, empty


def _score_rows(values: Values) -> tuple[Barrier, Barrier]:
    """S_prod and S_cons of the published kernels; a slot for each buffer of scores."""
    softmax = "every softmax thread of the tile"
    full = barrier_row(
        "scores_full",
        SCORE_BUFFERS,
        1,
        _commit(values),
        "commit of Q.K",
        "the softmax",
        "a block's scores are in tensor memory",
    )
    probabilities = barrier_row(
        "probabilities_full",
        SCORE_BUFFERS * values.num_pv_stages,
        TILE_ROWS * values.config.cta_group,
        "thread",
        softmax + (" in both CTAs" if values.is_pair else ""),
        "the MMA warp",
        "a part of P is in tensor memory, and the scores have been read",
        cta="leader" if values.is_pair else "own",
    )
    return full, probabilities


def _scale_rows(values: Values) -> tuple[Barrier, Barrier]:
    """C_prod and C_cons of the published kernels."""
    writers = "every softmax thread of the tile"
    return scale_rows("scale_full", "scale_empty", values.num_qo, TILE_ROWS, writers)


def _output_rows(values: Values) -> tuple[Barrier, Barrier]:
    """O_prod and O_cons of the published kernels."""
    full = barrier_row(
        "output_full",
        values.num_qo,
        1,
        _commit(values),
        "commit of P.V",
        "the correction" + _scores_wait(values),
        "a block's P.V has been added to the output",
    )
    ready = barrier_row(
        "output_ready",
        values.num_qo,
        TILE_ROWS * values.config.cta_group,
        "thread",
        "every thread of the correction" + (" in both CTAs" if values.is_pair else ""),
        "the MMA warp",
        "the output has been rescaled, or read at the end of a tile",
        first_wait=1,
        cta="leader" if values.is_pair else "own",
    )
    return full, ready


def _scores_wait(values: Values) -> str:
    from fa4gen.designs.attention_sm100.tensor_memory import has_columns_for_probabilities

    if has_columns_for_probabilities(values):
        return ""
    return "; the MMA warp, before scores go where P was read"


def _tile_rows(values: Values) -> tuple[Barrier, Barrier]:
    """Full and empty of the slots that tiles pass through; every warp but the loader's reads."""
    shared = values.is_pair and values.scheduler == "dynamic"
    return other_role_tiles(4 * values.num_qo + 4 + 1, shared=shared)
