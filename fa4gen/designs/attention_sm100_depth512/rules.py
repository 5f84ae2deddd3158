"""What a config of depth 512 may not ask for, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100_depth512.memory import attention_regions
from fa4gen.designs.attention_sm100_depth512.values import (
    BESIDE_TABLES,
    FIXED,
    MAX_STAGES,
    MOST_BESIDE_TABLE,
    NUM_THREADS,
    PART,
    REASONS,
    looks_up_both,
    looks_up_scores,
)
from fa4gen.designs.shared import limits
from fa4gen.designs.shared.refusal import Fault
from fa4gen.designs.shared.shared_memory import dynamic_shared_bytes

WORKING_REGISTERS = 56
"""Of a softmax thread beside its scores: measured, with less it spills."""
CHANGED_REGISTERS = 16
"""Besides, each: for a mask beyond causal, for a changed score, and beside either for polynomials
of more than ``FEW_POLYNOMIALS``. The planned split has room for two, which suffices for all; beside
a table it has room for one, which suffices, too."""
FEW_POLYNOMIALS = 0.25
"""Share of exponentials on the FMA pipe."""
LOOKUP_REGISTERS = 40
"""Of warps that look up pages, or that read a tile's lengths: measured, with less they spill."""
MOST_BESIDE_PARITY = 0.375
"""Share of exponentials on the FMA pipe beside a test of whether keys are even: 0.5 spills."""

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100_depth512.values import Values


def faults(values: Values) -> Iterator[Fault]:
    """Yield what the config asks for that cannot work."""
    yield from _geometry(values)
    yield from _stages(values)
    yield from _registers(values)
    yield from limits.range_of_fp8(values)


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


def _registers(values: Values) -> Iterator[Fault]:
    split = values.registers
    available = registers_at_entry(values) * NUM_THREADS
    yield from limits.role_registers(values, 1, available, ([{"registers": "auto"}],))
    least = limits.LEAST_REGISTERS
    if values.config.has_tile_lengths:
        least = {**least, "other": LOOKUP_REGISTERS}
    yield from limits.least_role_registers(values, least=least)
    most = min(split.softmax, values.arch.max_registers_per_thread)
    looks_up = looks_up_scores(values.config)
    if looks_up:
        yield from _most_beside_table(values)
    working = WORKING_REGISTERS + CHANGED_REGISTERS * min(2 - looks_up, _changes(values))
    if looks_up_both(values.config):
        working = BESIDE_TABLES - PART
    if most < PART + working:
        yield Fault(
            kind="registers of a row",
            message=f"registers: a softmax thread keeps {PART} scores and needs {working}"
            f" more, {PART + working} in all, and has {most}",
            keys=("registers",),
            remedies=([{"registers": "auto"}],),
        )
    if values.exp2_fma_share > MOST_BESIDE_PARITY and (
        values.config.resolved_mask.tells_neighbours_apart
    ):
        yield Fault(
            kind="registers of polynomials",
            message=f"registers: beside a mask that distinguishes neighbouring keys, a softmax "
            f"thread has room for {MOST_BESIDE_PARITY} of the exponentials on the FMA pipe, "
            f"got {values.exp2_fma_share:g}",
            keys=("exp2_fma_share",),
            remedies=([{"exp2_fma_share": MOST_BESIDE_PARITY}],),
        )
    if values.config.resolved_score.bends_by_key and _divides_or_compares(values):
        yield Fault(
            kind="registers of a condition and a score",
            message="score computes more than a multiple of the key, beside a mask that divides "
            "the key or compares it with the query and bounds no row's keys: ptxas keeps both for "
            "all scores of a softmax thread, and spills",
            keys=("score", "mask"),
            remedies=([{"mask": "causal"}],),
        )


def _divides_or_compares(values: Values) -> bool:
    """Whether the mask is such a condition: 8 of 10 divisors spilled 352 to 604 bytes.

    One that asks how far a key is, or bounds a row's keys besides, did not.
    """
    mask = values.config.resolved_mask
    text = mask.TEST or ""
    either = "{key} %" in text and "||" in text and "{query}" in text and "abs(" not in text
    return either and mask.FIRST is None and mask.LAST is None


def _most_beside_table(values: Values) -> Iterator[Fault]:
    """Yield a fault where a softmax thread has so many registers that it loads too far ahead."""
    split = values.registers
    fewer = {**limits.split_keys(split), "softmax": MOST_BESIDE_TABLE}
    fault = Fault(
        kind="registers beside a table",
        message=f"registers: the score reads a tensor key by key, and with more than "
        f"{MOST_BESIDE_TABLE} for the softmax ptxas loads so far ahead that it spills, got "
        f"{split.softmax}",
        keys=("registers",),
        remedies=([{"registers": fewer}], [{"registers": "auto"}]),
    )
    yield from limits.exceeded(fault, split.softmax, MOST_BESIDE_TABLE)


def _changes(values: Values) -> int:
    """Count what takes registers of a softmax thread beside the scores that it keeps."""
    mask, score = values.config.resolved_mask, values.config.resolved_score
    changes = (mask.FIRST is not None or mask.TEST is not None) + bool(score.words)
    return changes + (changes > 0 and values.exp2_fma_share > FEW_POLYNOMIALS)


def registers_at_entry(values: Values) -> int:
    """Return the registers per thread that the launch gives out, before setmaxnreg."""
    return values.arch.registers // NUM_THREADS // 8 * 8
