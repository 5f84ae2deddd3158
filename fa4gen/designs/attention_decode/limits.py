"""The hardware's limits on a decode kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_decode.memory import decode_regions
from fa4gen.designs.attention_decode.values import MMA_KEYS, MMA_ROWS
from fa4gen.designs.shared import limits
from fa4gen.designs.shared.refusal import Fault
from fa4gen.designs.shared.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_decode.values import Values

WORKING_REGISTERS = 72
"""Scores, probabilities, row state, addresses, the tile: with less a thread spills."""

CONVERTED_KEYS = 8
"""Beside lengths or a window, of keys and values of 8 bits that become 16."""

PLACES = 4
"""Of 8 rows whose scores or masks are expressions: positions and terms."""

PLACES_OF_LENGTHS = 16
"""The same of scores beside lengths or pages: 16 rows of depth 96 spill, 16 of depth 64 do not."""

TESTED_PLACES = 20
"""The same where both are, and keys become 16 bits: a warp has more keys of a block."""

PLACES_OF_TABLES = 24
"""The same where the score reads a table key by key."""

WIDE_WORKING_REGISTERS = 48
"""The same where the query is in shared memory."""


def exceeded_limits(values: Values) -> Iterator[Fault]:
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


def _registers(values: Values) -> Iterator[Fault]:
    """Yield a fault where what a thread of a consumer keeps does not fit its registers."""
    if values.is_wide:
        yield from _wide_registers(values)
        return
    depth, rows = values.config.depth, values.packed_rows
    steps, tiles = depth // MMA_KEYS, rows // MMA_ROWS
    working = WORKING_REGISTERS + CONVERTED_KEYS * _is_crowded(values) + _of_places(values)
    held = 0 if values.query_in_shared else 2
    needed = (held + 4) * steps * tiles + working
    available = values.registers
    columns = "(2 of queries + 4 of output)" if held else "4 of output"
    yield from limits.exceeded(
        Fault(
            kind="consumer registers",
            message=f"registers: a thread of a consumer holds {depth} / 16 * {rows} / 8 * "
            f"{columns} + {working} of scores, row state and addresses = {needed}, but has "
            f"{available}",
            keys=("packed_rows", "depth"),
            remedies=([{"packed_rows": MMA_ROWS}],),
        ),
        needed,
        available,
    )


def _of_places(values: Values) -> int:
    """Return the registers for what an expression needs of each row: measured."""
    config, tiles = values.config, values.packed_rows // MMA_ROWS
    scored, tested = config.resolved_score.IS_EXPRESSION, config.resolved_mask.TEST is not None
    converted = config.resolved_kv_dtype != config.dtype
    if not scored and not tested:
        return 0
    places = PLACES_OF_LENGTHS if scored and config.has_tile_lengths else PLACES
    if scored and converted:
        looked_up = config.resolved_score.reads_by_key
        places += PLACES_OF_TABLES if looked_up else TESTED_PLACES * tested
    return tiles * places


def _is_crowded(values: Values) -> bool:
    """Whether what is converted spills beside what a tile, row or score needs: measured."""
    config = values.config
    windowed = config.resolved_mask.FIRST is not None
    if config.resolved_kv_dtype == config.dtype:
        return windowed and config.has_tile_lengths and bool(config.resolved_score.words)
    bent = config.resolved_mask.LAST is not None and bool(config.resolved_score.words)
    return windowed or bent or config.has_tile_lengths


def _wide_registers(values: Values) -> Iterator[Fault]:
    depth, keys = values.config.depth, values.part_keys
    needed = depth // 2 + keys // 2 + keys // 4 + WIDE_WORKING_REGISTERS
    yield from limits.exceeded(
        Fault(
            kind="consumer registers",
            message=f"registers: a thread of a consumer holds {depth} / 2 of output + {keys} / 2 "
            f"scores + {keys} / 4 of probabilities + {WIDE_WORKING_REGISTERS} of row state and "
            f"addresses = {needed}, but has {values.registers}",
            keys=("packed_rows", "depth"),
            remedies=([{"packed_rows": MMA_ROWS}],),
        ),
        needed,
        values.registers,
    )
