"""The rules of depth 512 for configs, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100_depth512.memory import attention_regions
from fa4gen.designs.attention_sm100_depth512.values import (
    MAX_STAGES,
    NUM_THREADS,
    PART,
    ROW_REGISTERS,
)
from fa4gen.designs.common import limits
from fa4gen.designs.common.refusal import Changes, Refusal
from fa4gen.designs.common.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100_depth512.values import Values


def faults(values: Values) -> Iterator[Refusal]:
    """Yield the config's requests that cannot work."""
    yield from _stages(values)
    yield from _registers(values)
    yield from limits.range_of_fp8(values)


def _stages(values: Values) -> Iterator[Refusal]:
    stages = values.num_kv_stages
    if stages > MAX_STAGES:
        yield Refusal(
            kind="barriers",
            message=f"num_kv_stages: one warp initialises the barriers, a lane each, and 10 + 2 * "
            f"{stages} = {10 + 2 * stages} are more than its 32 lanes",
            keys=("num_kv_stages",),
            remedies=(({"num_kv_stages": n} for n in range(MAX_STAGES, 0, -1)),),
        )
        return
    needed = dynamic_shared_bytes(attention_regions(values))
    data = values.query_bytes + values.probability_bytes + stages * values.slot_bytes
    yield from limits.shared_memory(
        needed,
        values.arch.shared_bytes,
        [
            f"{values.query_bytes} for queries",
            f"{values.probability_bytes} for P",
            f"{stages} * {values.slot_bytes} for slots of keys and values",
            f"{needed - data} for barriers and alignment",
        ],
        ("num_kv_stages",),
        (({"num_kv_stages": n} for n in range(stages - 1, 0, -1)),),
    )


def _registers(values: Values) -> Iterator[Refusal]:
    """Yield faults of registers that no compiler changes."""
    to_auto: tuple[list[Changes], ...] = ([{"registers": "auto"}],)
    pool = registers_at_entry(values) * NUM_THREADS
    yield from limits.role_registers(values, 1, pool, to_auto)
    available = min(values.registers.softmax, values.arch.max_registers_per_thread)
    needed = PART + ROW_REGISTERS
    fault = Refusal(
        kind="registers of a row",
        message=f"registers: a softmax thread keeps {PART} scores and {ROW_REGISTERS} of row state "
        f"= {needed}, but has {available}",
        keys=("registers",),
        remedies=to_auto,
    )
    yield from limits.exceeded(fault, needed, available)


def registers_at_entry(values: Values) -> int:
    """Return the registers per thread that the launch gives out, before setmaxnreg."""
    return values.arch.registers // NUM_THREADS // 8 * 8
