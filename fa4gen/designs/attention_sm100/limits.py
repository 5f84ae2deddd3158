"""The hardware's limits on a Blackwell attention kernel, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.memory import attention_regions
from fa4gen.designs.attention_sm100.registers import (
    EXACT,
    PREFERRED_BLOCKS,
    softmax_registers,
)
from fa4gen.designs.attention_sm100.suggested_fixes import back_to_auto
from fa4gen.designs.attention_sm100.tensor_memory import columns_needed
from fa4gen.designs.attention_sm100.values import KEY_STEP, TILE_ROWS, least_other_registers
from fa4gen.designs.shared import limits
from fa4gen.designs.shared.refusal import Changes, Fault
from fa4gen.designs.shared.roles import WARPGROUP
from fa4gen.designs.shared.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.values import Values


def exceeded_limits(values: Values) -> Iterator[Fault]:
    """Yield each limit that the values exceed."""
    yield from _tensor_memory(values)
    yield from _shared_memory(values)
    yield from _register_file(values)
    least = {**limits.LEAST_REGISTERS, "other": least_other_registers(values)}
    yield from limits.least_role_registers(values, back_to_auto(values.config), least)
    yield from _row_registers(values)


def _tensor_memory(values: Values) -> Iterator[Fault]:
    needed, available = columns_needed(values), values.arch.tensor_memory_columns
    tiles, depth = values.num_qo, values.value_depth
    fault = Fault(
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


def _shared_memory(values: Values) -> Iterator[Fault]:
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


def _register_file(values: Values) -> Iterator[Fault]:
    split, available = values.registers, register_pool(values)
    room = available // WARPGROUP - split.correction - split.other
    fewer = room // values.num_qo // 8 * 8
    corrected = {"softmax": fewer, "correction": split.correction, "other": split.other}
    fixes = ([{"registers": corrected}] if fewer >= 24 else [], [{"registers": "auto"}])
    last = back_to_auto(values.config)
    yield from limits.role_registers(values, values.num_qo, available, fixes, last)


def registers_at_entry(values: Values) -> int:
    """Return the registers per thread that the launch gives out, before setmaxnreg."""
    return min(values.arch.registers // values.num_threads // 8 * 8, 256)


def register_pool(values: Values) -> int:
    """Return the registers of the launch: what one warpgroup takes, another has given up."""
    return registers_at_entry(values) * values.num_threads


def _row_registers(values: Values) -> Iterator[Fault]:
    config = values.config
    most = min(values.registers.softmax, values.arch.max_registers_per_thread)
    working = softmax_registers(config, values.exp2_fma_share, values.BN, values.num_qo)
    needed = values.BN + working
    if needed <= most:
        return
    fewer: list[Changes] = []
    block = values.BN
    if values.exp2_fma_share > (0 if block > PREFERRED_BLOCKS[0] else EXACT):
        eighths = range(int(8 * values.exp2_fma_share) - 1, -1, -1)
        fewer = [{"exp2_fma_share": n / 8} for n in eighths]
    yield Fault(
        kind="registers of a row",
        message=f"registers: a softmax thread keeps the {values.BN} scores of a row and needs "
        f"{working} more, with {values.exp2_fma_share:g} of the exponentials on the FMA pipe: "
        f"{needed} in all, and has {most}",
        keys=("BN", "exp2_fma_share", "registers"),
        remedies=(
            _narrower_blocks(values),
            fewer,
            [{"registers": "auto"}] if config.registers != "auto" else [],
        ),
        last_resort=({**few, **more} for few in ({}, *fewer) for more in back_to_auto(config)),
    )
