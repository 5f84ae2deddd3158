"""The hardware's limits on a decode kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_decode.memory import decode_regions
from fa4gen.designs.attention_decode.values import MMA_KEYS, MMA_ROWS
from fa4gen.designs.common import limits
from fa4gen.designs.common.refusal import Refusal
from fa4gen.designs.common.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_decode.values import Values


def exceeded_limits(values: Values) -> Iterator[Refusal]:
    """Yield each limit that the values exceed."""
    needed = dynamic_shared_bytes(decode_regions(values))
    stages, block = values.num_kv_stages, values.block_bytes
    yield from limits.shared_memory(
        needed,
        values.arch.shared_bytes,
        [
            f"{stages} * {block} for blocks of keys and values",
            f"{needed - stages * block} for the exchange between warps, barriers and alignment",
        ],
        ("num_kv_stages",),
        (({"num_kv_stages": fewer} for fewer in range(stages - 1, 0, -1)),),
    )
    yield from _registers(values)


def _registers(values: Values) -> Iterator[Refusal]:
    """Yield a fault where what a thread of a consumer holds at once does not fit its registers."""
    depth, rows = values.config.depth, values.packed_rows
    if values.is_wide:
        keys = values.part_keys
        needed = depth // 2 + keys // 2 + keys // 4
        holds = f"{depth} / 2 of output + {keys} / 2 of scores + {keys} / 4 of probabilities"
    else:
        held = 0 if values.query_in_shared else 2
        needed = (held + 4) * (depth // MMA_KEYS) * (rows // MMA_ROWS)
        columns = "(2 of queries + 4 of output)" if held else "4 of output"
        holds = f"{depth} / 16 * {rows} / 8 * {columns}"
    yield from limits.exceeded(
        Refusal(
            kind="consumer registers",
            message=f"registers: a thread of a consumer holds {holds} = {needed}, but has "
            f"{values.registers}",
            keys=("packed_rows", "depth"),
            remedies=([{"packed_rows": "auto"}],),
        ),
        needed,
        values.registers,
    )
