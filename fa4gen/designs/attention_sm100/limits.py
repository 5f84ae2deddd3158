"""The hardware's limits on a Blackwell attention kernel, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.candidates import KEYS
from fa4gen.designs.attention_sm100.memory import attention_regions
from fa4gen.designs.attention_sm100.suggested_fixes import back_to_auto
from fa4gen.designs.attention_sm100.tensor_memory import columns_needed
from fa4gen.designs.attention_sm100.values import KEY_STEP, ROW_REGISTERS, TILE_ROWS
from fa4gen.designs.common import limits
from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.common.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.values import Values


def exceeded_limits(values: Values) -> Iterator[Refusal]:
    """Yield each limit that the values exceed."""
    yield from _tensor_memory(values)
    yield from _shared_memory(values)
    yield from _register_file(values)
    yield from _row_registers(values)


def _tensor_memory(values: Values) -> Iterator[Refusal]:
    needed, available = columns_needed(values), values.arch.tensor_memory_columns
    tiles, depth = values.num_qo, values.value_depth
    fault = Refusal(
        kind="tensor memory",
        message=f"tensor memory: 2 * {values.BN} columns for scores + {tiles} * {depth} for "
        f"outputs = {needed}, {available} available",
        keys=("BN", "BM", "value_depth", "depth"),
        remedies=(
            _narrower_blocks(values),
            [{"BM": TILE_ROWS}, {"BM": TILE_ROWS, "BN": "auto"}] if tiles == 2 else [],
        ),
        last_resort=back_to_auto(values.config),
    )
    yield from limits.exceeded(fault, needed, available)


def _narrower_blocks(values: Values) -> Iterator[Changes]:
    return ({"BN": n} for n in range(values.BN - KEY_STEP, 0, -KEY_STEP))


def _shared_memory(values: Values) -> Iterator[Refusal]:
    needed = dynamic_shared_bytes(attention_regions(values))
    stages, slots = values.num_kv_stages, values.slot_bytes
    queries = values.num_qo * values.query_bytes
    outputs = values.num_qo * values.out_bytes if values.output_staging == "own" else 0
    rest = needed - queries - outputs - stages * sum(slots)
    yield from limits.shared_memory(
        needed,
        values.arch.shared_bytes,
        [
            f"{queries} for queries",
            f"{outputs} for outputs",
            f"{stages} * ({' + '.join(map(str, slots))}) for stages of keys and values",
            f"{rest} for barriers, scales and alignment",
        ],
        ("num_kv_stages", "BN", "BM", "depth"),
        (
            ({"num_kv_stages": n} for n in range(stages - 1, 0, -1)),
            _narrower_blocks(values),
            _smaller_tiles(values),
        ),
        back_to_auto(values.config),
    )


def _smaller_tiles(values: Values) -> list[Changes]:
    return [{"BM": TILE_ROWS}] if values.num_qo == 2 else []


def _register_file(values: Values) -> Iterator[Refusal]:
    yield from limits.role_registers(
        values,
        values.num_qo,
        register_pool(values),
        ([{"registers": "auto"}],),
        back_to_auto(values.config),
    )


def registers_at_entry(values: Values) -> int:
    """Return the registers per thread that the launch gives out, before setmaxnreg."""
    return min(values.arch.registers // values.num_threads // 8 * 8, 256)


def register_pool(values: Values) -> int:
    """Return the registers of the launch: what one warpgroup takes, another has given up."""
    return registers_at_entry(values) * values.num_threads


def _row_registers(values: Values) -> Iterator[Refusal]:
    """Yield a fault where a row of scores does not fit the registers of a softmax thread.

    What else a thread keeps is for the compiler to say.
    """
    available = min(values.registers.softmax, values.arch.max_registers_per_thread)
    needed = values.BN + ROW_REGISTERS
    fault = Refusal(
        kind="registers of a row",
        message=f"registers: a softmax thread keeps the {values.BN} scores of a row and "
        f"{ROW_REGISTERS} of row state = {needed}, but has {available}",
        keys=("BN", "registers"),
        remedies=limits.each_to_auto(values.config, KEYS),
        last_resort=back_to_auto(values.config),
    )
    yield from limits.exceeded(fault, needed, available)
