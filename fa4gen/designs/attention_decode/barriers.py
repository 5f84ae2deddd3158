"""The barrier table of the decode kernel: each row is declared here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.barriers import barrier_row

if TYPE_CHECKING:
    from fa4gen.designs.attention_decode.values import Values
    from fa4gen.designs.common.model import Barrier


def decode_barriers(values: Values) -> tuple[Barrier, Barrier]:
    """Return the rows of the table, not yet placed in shared memory."""
    full = barrier_row(
        "kv_full",
        values.num_kv_stages,
        1,
        "tma_bytes",
        "the loader, then the bytes of the block",
        "every consumer",
        "a block of keys, or of values, has landed in its slot",
        transaction_bytes=values.block_bytes,
    )
    empty = barrier_row(
        "kv_empty",
        values.num_kv_stages,
        values.num_consumer_warps,
        "thread",
        "every consumer warp, once it has read its keys of the block",
        "the loader",
        "a slot may be overwritten",
        first_wait=1,
    )
    return full, empty
