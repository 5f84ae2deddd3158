"""What a config of depth 512 may not ask for, and ways out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.values import E4M3_LARGEST_LOG2
from fa4gen.designs.attention_sm100_depth512.memory import attention_regions, dynamic_shared_bytes
from fa4gen.designs.attention_sm100_depth512.values import (
    FIXED,
    MAX_STAGES,
    NUM_THREADS,
    PART,
    REASONS,
)
from fa4gen.designs.shared.refusal import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100_depth512.values import Values

ROW_REGISTERS = 12
"""Beside half a row's scores a softmax thread holds at least maximum, sum, scale, addresses."""


def faults(values: Values) -> Iterator[Fault]:
    """Yield what the config asks for that cannot work."""
    yield from _geometry(values)
    yield from _stages(values)
    yield from _registers(values)
    if values.element_bytes == 1 and values.rescale_threshold > E4M3_LARGEST_LOG2:
        yield Fault(
            kind="range of fp8",
            message=f"rescale_threshold: probabilities up to 2^{values.rescale_threshold:g} do not "
            "fit fp8_e4m3, whose largest number is 448",
            keys=("rescale_threshold",),
            remedies=([{"rescale_threshold": 0.0}],),
        )


def _geometry(values: Values) -> Iterator[Fault]:
    for key, value in FIXED.items():
        asked = getattr(values.config, key)
        if asked not in ("auto", value):
            yield Fault(
                kind=f"geometry: {key}",
                message=f"{key}: at depth 512 it is {value}, got {asked}: {REASONS[key]}",
                keys=(key,),
                remedies=([{key: value}],),
            )


def _stages(values: Values) -> Iterator[Fault]:
    stages = values.num_kv_stages
    if stages > MAX_STAGES:
        yield Fault(
            kind="barriers",
            message=f"num_kv_stages: one warp initialises the barriers, a lane each, and 10 + 2 * "
            f"{stages} = {10 + 2 * stages} are more than its 32 lanes",
            keys=("num_kv_stages",),
            remedies=(({"num_kv_stages": n} for n in range(MAX_STAGES, 0, -1)),),
        )
        return
    needed = dynamic_shared_bytes(attention_regions(values))
    if needed > values.arch.shared_bytes:
        yield Fault(
            kind="shared memory",
            message=f"shared memory: {values.query_bytes} for queries + {values.probability_bytes} "
            f"for P + {stages} * {values.slot_bytes} for slots of keys and values + "
            f"{needed - values.query_bytes - values.probability_bytes - stages * values.slot_bytes}"
            f" for barriers and alignment = {needed} bytes, {values.arch.shared_bytes} available",
            keys=("num_kv_stages",),
            remedies=(({"num_kv_stages": n} for n in range(stages - 1, 0, -1)),),
        )


def _registers(values: Values) -> Iterator[Fault]:
    split = values.registers
    needed = 128 * (split.softmax + split.correction + split.other)
    available = registers_at_entry(values) * NUM_THREADS
    if needed > available:
        yield Fault(
            kind="register file",
            message=f"registers: 128 * ({split.softmax} for the softmax + {split.correction} for "
            f"the correction + {split.other} for the other warps) = {needed}, {available} "
            "available: setmaxnreg would wait for ever",
            keys=("registers",),
            remedies=([{"registers": "auto"}],),
        )
    if min(split.softmax, values.arch.max_registers_per_thread) < PART + ROW_REGISTERS:
        yield Fault(
            kind="registers of a row",
            message=f"registers: a softmax thread keeps {PART} scores and at least {ROW_REGISTERS} "
            f"numbers more, {PART + ROW_REGISTERS} in all, and has {split.softmax}",
            keys=("registers",),
            remedies=([{"registers": "auto"}],),
        )


def registers_at_entry(values: Values) -> int:
    """Return the registers per thread that the launch gives out, before setmaxnreg."""
    return values.arch.registers // NUM_THREADS // 8 * 8
