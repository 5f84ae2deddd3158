"""The barrier table at depth 512: the rows of Depth512MBars at its offsets, then the kernel's own.

One CTA contributes 256 arrivals to PO_lo and 128 to PO_hi and to the S consumers; the leader's
copy, which the MMA warp waits for, counts both CTAs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.barriers import barrier_row
from fa4gen.designs.common.blackwell_attention import other_role_tiles, scale_rows

if TYPE_CHECKING:
    from fa4gen.designs.attention_sm100_depth512.values import Values
    from fa4gen.designs.common.model import Barrier

THREADS = 128
"""The threads of the softmax, and of the correction."""
BOTH = 2


def attention_barriers(values: Values) -> tuple[Barrier, ...]:
    """Return the rows of the table, not yet placed in shared memory."""
    return (*_output_rows(), *_score_consumer_rows(), *_scale_rows(), *_score_producer_rows(),
            *_product_rows(), *_ring_rows(values), *_other_rows(values))  # fmt: skip


def _output_rows() -> tuple[Barrier, Barrier]:
    return (
        barrier_row(
            "po_lo",
            1,
            BOTH * 2 * THREADS,
            "thread",
            "every thread of softmax and correction in both CTAs",
            "the MMA warp",
            "P is stored, and O_lo has been rescaled, or read",
            cta="leader",
        ),
        barrier_row(
            "po_hi",
            1,
            BOTH * THREADS,
            "thread",
            "every thread of the correction in both CTAs",
            "the MMA warp",
            "O_hi has been rescaled, or read",
            cta="leader",
        ),
    )


def _score_consumer_rows() -> list[Barrier]:
    return [
        barrier_row(
            f"s_{name}_consumer",
            1,
            BOTH * THREADS,
            "thread",
            "every softmax thread in both CTAs",
            "the MMA warp",
            f"the scores of an {name} block have been loaded",
            first_wait=1,
            cta="leader",
        )
        for name in ("even", "odd")
    ]


def _scale_rows() -> tuple[Barrier, Barrier]:
    return scale_rows("c_producer", "c_consumer", 1, THREADS, "every softmax thread")


def _score_producer_rows() -> list[Barrier]:
    return [
        barrier_row(
            f"s_{name}_producer",
            1,
            1,
            "multicast_commit",
            "commit of Q.K",
            "the softmax",
            f"the scores of an {name} block are in tensor memory",
        )
        for name in ("even", "odd")
    ]


def _product_rows() -> list[Barrier]:
    waits = {"lo": "the correction", "hi": "the correction; the softmax, before it stores P"}
    return [
        barrier_row(
            f"o_mma_{half}",
            1,
            1,
            "multicast_commit",
            f"commit of P.V_{half}",
            waits[half],
            f"a block's P.V_{half} has been added to O_{half}",
        )
        for half in ("lo", "hi")
    ]


def _ring_rows(values: Values) -> tuple[Barrier, Barrier]:
    return (
        barrier_row(
            "kv_producer",
            values.num_kv_stages,
            1,
            "tma_bytes",
            "the leader's loader, then the bytes of both CTAs, the first time with those of Q",
            "the MMA warp",
            "a part of K or V has landed",
            transaction_bytes=BOTH * values.slot_bytes,
            cta="leader",
        ),
        barrier_row(
            "kv_consumer",
            values.num_kv_stages,
            1,
            "multicast_commit",
            "commit of the product that reads the part",
            "the loader",
            "the slot of a part may be overwritten",
            first_wait=1,
        ),
    )


def _other_rows(values: Values) -> tuple[Barrier, ...]:
    return (
        barrier_row(
            "query_empty",
            1,
            1,
            "thread",
            "the thread whose TMA store has read the space",
            "the loader",
            "the queries' space may be overwritten",
            first_wait=1,
        ),
        *other_role_tiles(4 + 4 + 1, shared=values.scheduler == "dynamic"),
    )
