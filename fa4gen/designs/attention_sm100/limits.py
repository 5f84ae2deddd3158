"""The hardware's limits on a Blackwell attention kernel: what is proved not to fit, and ways out.

Only what cannot work whatever the compiler does is refused: what merely may spill is left to the
compiler, whose log is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.memory import attention_regions, dynamic_shared_bytes
from fa4gen.designs.attention_sm100.tensor_memory import columns_needed
from fa4gen.designs.attention_sm100.values import KEY_STEP, TILE_ROWS
from fa4gen.designs.attention_sm100.ways_out import back_to_auto
from fa4gen.designs.shared.refusal import Changes, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.values import Values

WARPGROUP = 128
ROW_REGISTERS = 12
"""Beside a row's scores a softmax thread holds maximum, sum, scale, addresses and counters."""


def exceeded_limits(values: Values) -> Iterator[Fault]:
    """Yield each limit that the values exceed."""
    yield from _tensor_memory(values)
    yield from _shared_memory(values)
    yield from _register_file(values)
    yield from _row_registers(values)


def _tensor_memory(values: Values) -> Iterator[Fault]:
    needed, available = columns_needed(values), values.arch.tensor_memory_columns
    if needed <= available:
        return
    tiles, depth = values.num_qo, values.value_depth
    yield Fault(
        kind="tensor memory",
        message=f"tensor memory: 2 * {values.BN} columns for scores + {tiles} * {depth} for "
        f"outputs = {needed}, {available} available",
        keys=("BN", "BM", "value_depth", "depth"),
        remedies=(
            ({"BN": n} for n in range(values.BN - KEY_STEP, 0, -KEY_STEP)),
            [{"BM": TILE_ROWS}, {"BM": TILE_ROWS, "BN": "auto"}] if tiles == 2 else [],
        ),
        last_resort=back_to_auto(values.config),
    )


def _shared_memory(values: Values) -> Iterator[Fault]:
    needed = dynamic_shared_bytes(attention_regions(values))
    available = values.arch.shared_bytes
    if needed <= available:
        return
    stages = values.num_kv_stages
    queries = values.num_qo * values.query_bytes
    outputs = values.num_qo * values.out_bytes if values.output_staging == "own" else 0
    slots = " + ".join(map(str, values.slot_bytes))
    rest = needed - queries - outputs - stages * sum(values.slot_bytes)
    yield Fault(
        kind="shared memory",
        message=f"shared memory: {queries} for queries + {outputs} for outputs + {stages} * "
        f"({slots}) for stages of keys and values + {rest} for barriers, scales and alignment = "
        f"{needed} bytes, {available} available",
        keys=("num_kv_stages", "BN", "BM", "depth"),
        remedies=(
            ({"num_kv_stages": n} for n in range(stages - 1, 0, -1)),
            ({"BN": n} for n in range(values.BN - KEY_STEP, 0, -KEY_STEP)),
            _smaller_tiles(values),
        ),
        last_resort=back_to_auto(values.config),
    )


def _smaller_tiles(values: Values) -> list[Changes]:
    return [{"BM": TILE_ROWS}] if values.num_qo == 2 else []


def _register_file(values: Values) -> Iterator[Fault]:
    split = values.registers
    needed = WARPGROUP * (values.num_qo * split.softmax + split.correction + split.other)
    available = register_pool(values)
    if needed <= available:
        return
    room = available // WARPGROUP - split.correction - split.other
    fewer = room // values.num_qo // 8 * 8
    yield Fault(
        kind="register file",
        message=f"registers: 128 * ({values.num_qo} * {split.softmax} for the softmax + "
        f"{split.correction} for the correction + {split.other} for the other warps) = {needed}, "
        f"{available} available: setmaxnreg would wait for ever",
        keys=("registers",),
        remedies=(
            [
                {"registers": {"softmax": n, "correction": split.correction, "other": split.other}}
                for n in [fewer]
                if n >= 24
            ],
            [{"registers": "auto"}],
        ),
        last_resort=back_to_auto(values.config),
    )


def registers_at_entry(values: Values) -> int:
    """Return the registers per thread that the launch gives out, before setmaxnreg."""
    return min(values.arch.registers // values.num_threads // 8 * 8, 256)


def register_pool(values: Values) -> int:
    """Return the registers of the launch: what one warpgroup takes, another has given up."""
    return registers_at_entry(values) * values.num_threads


def _row_registers(values: Values) -> Iterator[Fault]:
    most = min(values.registers.softmax, values.arch.max_registers_per_thread)
    needed = values.BN + ROW_REGISTERS
    if needed <= most:
        return
    yield Fault(
        kind="registers of a row",
        message=f"registers: a softmax thread keeps the {values.BN} scores of a row and at least "
        f"{ROW_REGISTERS} more, {needed} in all, and has {most}",
        keys=("BN", "registers"),
        remedies=(
            ({"BN": n} for n in range(values.BN - KEY_STEP, 0, -KEY_STEP)),
            [{"registers": "auto"}] if values.config.registers != "auto" else [],
        ),
        last_resort=back_to_auto(values.config),
    )
