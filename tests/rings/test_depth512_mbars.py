"""Depth512MBars: offsets and counts of its barriers, and a small attention that uses them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import validated
from fa4gen.emulator import Program, Report, TensorMap
from fa4gen.errors import CompileError
from fa4gen.render.environment import open_templates
from fa4gen.render.instructions import FAMILIES
from tests.rings.harness import (
    ARCH,
    FAULTS,
    FOLDER,
    PANEL,
    ROWS,
    UNTOUCHED,
    Run,
    Variant,
    assert_clean,
    assert_reported,
    compile_text,
    launch,
    ring_states,
    small_integers,
)

if TYPE_CHECKING:
    from tests.rings.conftest import Policies

pytestmark = pytest.mark.compile

BLOCKS, CTAS, THREADS, LANES, PIPES = 9, 2, 320, 128, 10
STAGES = (1, 2, 3, 4, 11)
CLEAN = tuple(Variant(kind, stages) for stages in (1, 4, 11) for kind in ("even_odd", "ring"))
MUTANTS: dict[Variant, set[str]] = {
    Variant("even_odd", 4, 1, "one_release"): {"deadlock"},
    Variant("even_odd", 4, 1, "early_release"): {"race", "uninitialised"},
    Variant("even_odd", 4, 1, "no_wait"): {"race", "phase-lap"},
}
NO_ACQUIRE = Variant("even_odd", 4, 1, "no_acquire")
OFFSETS = {
    "PO_lo": 0, "PO_hi": 1, "S_even_consumer": 2, "S_odd_consumer": 3, "C_producer": 4,
    "C_consumer": 5, "S_even_producer": 6, "S_odd_producer": 7, "O_mma_lo": 8, "O_mma_hi": 9,
    "KV": 10,
}  # fmt: skip
"""The offsets of the document, in units of barriers."""
# accessor: the producer's barrier, the consumer's, the first phase
ROLES = {
    "producer_s_even": ("S_even_producer", "S_even_consumer", 1),
    "producer_s_odd": ("S_odd_producer", "S_odd_consumer", 1),
    "consumer_s_even": ("S_even_producer", "S_even_consumer", 0),
    "consumer_s_odd": ("S_odd_producer", "S_odd_consumer", 0),
    "producer_s": ("S_even_producer", "S_even_consumer", 1),
    "consumer_s": ("S_even_producer", "S_even_consumer", 0),
    "producer_c": ("C_producer", "C_consumer", 1),
    "consumer_c": ("C_producer", "C_consumer", 0),
    "producer_o_lo": ("O_mma_lo", "PO_lo", 0),
    "producer_o_hi": ("O_mma_hi", "PO_hi", 0),
    "consumer_o_lo": ("O_mma_lo", "PO_lo", 0),
    "consumer_o_hi": ("O_mma_hi", "PO_hi", 0),
}
# of log[rank, pipe]: the producer's and consumer's barriers, the first phase
LOGGED = {
    1: ROLES["producer_o_lo"],
    2: ROLES["producer_o_hi"],
    4: ROLES["producer_c"],
    5: ROLES["consumer_c"],
    6: ROLES["consumer_o_lo"],
    7: ROLES["consumer_o_hi"],
}


def source() -> str:
    config = validated(
        {
            "kernel": "attention",
            "name": "pipelines",
            "arch": ARCH,
            "dtype": "bf16",
            "depth": 512,
            "cta_group": 2,
        }
    )
    template = open_templates(FOLDER).environment().get_template("depth512.cu.j2")
    return template.render(
        families=FAMILIES, used=(),
        plan=build_plan(config), pair=True, faults=FAULTS, variants=(*CLEAN, *MUTANTS, NO_ACQUIRE),
        stage_counts=STAGES,
    )  # fmt: skip


@cache
def depth512() -> Program:
    return Program(compile_text("depth512", source()))


def expected_output(left: Any, keys: Any, values: Any) -> Any:
    """out[rank, half, row, column]: the same sums, every factor applied between two blocks."""
    left, keys, values = (array.astype(np.float64) for array in (left, keys, values))
    out = np.zeros((CTAS, 2, LANES, 2 * PANEL))
    thread = np.arange(LANES)
    for block in range(BLOCKS):
        scores = left[:, 0, 0] @ keys[0, 0, 0, block * ROWS : (block + 1) * ROWS].T
        p = (scores.astype(np.int64) & 3) - 1
        if block:
            out *= (2 - (block + thread) % 4)[:, None]
        for half in range(2):
            rows = slice((2 * block + half) * ROWS, (2 * block + half + 1) * ROWS)
            out[:, half] += p @ values[0, 0, :, rows].swapaxes(0, 1).reshape(ROWS, 2 * PANEL)
    return out


def run(variant: Variant, **options: Any) -> tuple[Run, Any]:
    seed = options.get("seed", 0)
    left = small_integers(seed, CTAS, 1, 1, LANES, PANEL)
    keys = small_integers(seed + 1, 1, 1, 1, BLOCKS * ROWS, PANEL)
    values = small_integers(seed + 2, 1, 1, 2, 2 * BLOCKS * ROWS, PANEL)
    assert left.dtype == bfloat16
    maps = [
        TensorMap(array, (1, 1, 1, rows, PANEL), swizzle=2 * PANEL)
        for array, rows in ((left, LANES), (keys, ROWS // CTAS), (values, ROWS))
    ]
    out = np.full((CTAS, 2, LANES, 2 * PANEL), np.nan, np.float32)
    log = np.full((CTAS, PIPES, 3 * BLOCKS, 3), UNTOUCHED, np.int32)
    args = [*maps, out, log, np.int32(BLOCKS)]
    report = launch(depth512(), variant.name, args, CTAS, THREADS, **options)
    return Run(report, out, log), expected_output(left, keys, values)


def report_of(variant: Variant, **options: Any) -> Report:
    return run(variant, **options)[0].report


def accessors(stages: int) -> tuple[Any, Any, Any, Any]:
    """Roles, places and constants of the struct; arrivals that complete a phase, by barrier."""
    roles, places = np.full((12, 4), UNTOUCHED, np.int32), np.full(4, UNTOUCHED, np.int32)
    constants = np.full(15, UNTOUCHED, np.int32)
    arrivals = np.full(10 + 2 * stages, UNTOUCHED, np.int32)
    report = launch(depth512(), f"accessors_s{stages}", [roles, places, constants, arrivals], 1, 32)
    assert_clean(report)
    return roles, places, constants, arrivals


@pytest.mark.parametrize("stages", STAGES)
def test_constants_are_those_of_the_document(stages: int) -> None:
    _, _, constants, _ = accessors(stages)
    size = 10 + 2 * stages
    high_counts = 6
    assert constants.tolist() == [*OFFSETS.values(), high_counts, 2 * stages, size, size]


@pytest.mark.parametrize("stages", STAGES)
def test_accessors_give_the_documents_barriers(stages: int) -> None:
    roles, places, _, _ = accessors(stages)
    for row, (name, (producer, consumer, phase)) in zip(roles, ROLES.items(), strict=True):
        expected = [8 * OFFSETS[producer], 8 * OFFSETS[consumer], 0, phase]
        assert row.tolist() == expected, name
    assert places.tolist() == [0, 0, 8, 80]  # the base, PO_lo, PO_hi, KV


@pytest.mark.parametrize("stages", STAGES)
def test_one_warp_initialises_every_barrier(stages: int) -> None:
    """Counts of the document, doubled where the leader's MMA warp waits for both CTAs."""
    *_, arrivals = accessors(stages)
    assert arrivals.tolist() == [2 * 256, 2 * 128, 2 * 128, 2 * 128, 128, 128] + [1] * (
        4 + 2 * stages
    )


def test_more_barriers_than_lanes_are_refused() -> None:
    text = source() + "\ntemplate struct Depth512MBars<12>;\n"
    with pytest.raises(CompileError, match="One warp initialises the barriers, each lane one"):
        compile_text("twelve", text)


@pytest.mark.parametrize("variant", CLEAN, ids=str)
def test_a_small_attention_is_clean_and_exact(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        done, expected = run(variant, seed=seed, schedule=schedule)
        assert_clean(done.report)
        np.testing.assert_array_equal(done.out, expected)


@pytest.mark.parametrize("variant", CLEAN, ids=str)
def test_phases_over_several_wraps(variant: Variant) -> None:
    log = run(variant)[0].log
    assert (log[1, [0, 1, 2, 9]] == UNTOUCHED).all()  # the leader alone multiplies
    for pipe, (producer, consumer, first) in LOGGED.items():
        steps = BLOCKS - 1 if pipe in (4, 5) else BLOCKS  # a factor between two blocks
        expected = [
            [phase, 8 * OFFSETS[producer], 8 * OFFSETS[consumer]]
            for _, phase in ring_states(1, steps, phase=first)
        ]
        for rank in range(1 if pipe < 3 else CTAS):
            assert log[rank, pipe, :steps].tolist() == expected, pipe
    for pipe, first in ((0, 1), (3, 0)):  # S even, S odd: a phase is of every other block
        expected = [
            [
                phase,
                8 * (OFFSETS["S_even_producer"] + slot),
                8 * (OFFSETS["S_even_consumer"] + slot),
            ]
            for slot, phase in ring_states(2, BLOCKS, phase=first)
        ]
        for rank in range(1 if pipe == 0 else CTAS):
            assert log[rank, pipe, :BLOCKS].tolist() == expected, pipe
    for pipe, first in ((8, 1), (9, 0)):
        expected = [
            [phase, 8 * (OFFSETS["KV"] + slot), 8 * (OFFSETS["KV"] + variant.stages + slot)]
            for slot, phase in ring_states(variant.stages, 3 * BLOCKS, phase=first)
        ]
        for rank in range(CTAS if pipe == 8 else 1):
            assert log[rank, pipe].tolist() == expected, pipe


@pytest.mark.parametrize("variant", MUTANTS, ids=str)
def test_mutants_are_reported(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        assert_reported(report_of(variant, seed=seed, schedule=schedule), MUTANTS[variant])


def test_a_factor_needs_its_own_barrier(policies: Policies) -> None:
    """Products imply that the last factor was read, but hand over no shared memory of the peer."""
    for seed, schedule in policies:
        report = report_of(NO_ACQUIRE, seed=seed, schedule=schedule)
        assert report.verdict.value == "isa", str(report)
        assert {finding.kind for finding in report.findings} == {"race"}
        # which of the peer's threads are reported depends on the code that the compiler makes
        assert all(finding.who.startswith("CTA 1, thread") for finding in report.findings)
