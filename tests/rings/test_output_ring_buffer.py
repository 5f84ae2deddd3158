"""OutputRingBuffer: MMAs fill stages of tensor memory, the epilogue of one CTA or a pair reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.emulator import SCHEDULES, Report
from fa4gen.errors import CompileError
from tests.rings.harness import (
    ROWS,
    UNTOUCHED,
    Operands,
    Run,
    Variant,
    assert_clean,
    assert_reported,
    compile_text,
    launch,
    program,
    render,
    ring_states,
)

if TYPE_CHECKING:
    from tests.rings.conftest import Policies

pytestmark = pytest.mark.compile
COLUMNS, LANES, BLOCKS, THREADS = 512, 128, 16, 160

# kind, stages, stage_stride_cols
CLEAN = (
    Variant("acquired", 1, 32), Variant("scoped", 1, 128), Variant("scoped", 2, 32),
    Variant("acquired", 2, 64), Variant("acquired", 3, 128), Variant("scoped", 3, 64),
    Variant("acquired", 4, 32), Variant("scoped", 4, 128),
)  # fmt: skip
# A mutant is reported as one of these, whatever the interleaving.
MUTANTS: dict[Variant, set[str]] = {
    Variant("acquired", 2, 32, "no_wait"): {"race", "uninitialised"},
    Variant("acquired", 2, 32, "no_acquire"): {"race", "over-arrival", "deadlock"},
    Variant("acquired", 2, 32, "early_release"): {"missing-tcgen05-wait"},
    Variant("acquired", 1, 32, "early_commit"): {"race"},
    Variant("scoped", 2, 32, "first_phase"): {"deadlock"},
    Variant("scoped", 1, 32, "no_flip"): {"race", "deadlock"},
    Variant("scoped", 2, 32, "stage_early"): {"race", "uninitialised"},
}
PAIR_MUTANTS: dict[Variant, set[str]] = {
    Variant("acquired", 2, 32, "early_release"): {"missing-tcgen05-wait"},
    Variant("acquired", 2, 32, "one_release"): {"deadlock"},
    Variant("scoped", 2, 32, "half_count"): {"race", "phase-lap", "deadlock"},
    Variant("scoped", 2, 32, "one_told"): {"deadlock"},
    Variant("scoped", 2, 32, "stage_early"): {"race", "uninitialised"},
}
NO_FENCE = Variant("scoped", 1, 32, "no_fence")
PAIR_OR_NOT = pytest.mark.parametrize("ctas", [1, 2], ids=["single", "pair"])


def steps_of(variant: Variant) -> int:
    return 3 * variant.stages + 1


def parts_of(variant: Variant) -> int:
    """The first 32 columns of a stage and, where it has more, the last."""
    return 2 if variant.parts > ROWS else 1


def run(variant: Variant, ctas: int, operands: Operands, **options: Any) -> Run:
    steps = steps_of(variant)
    shape = (ctas, steps, parts_of(variant), LANES, ROWS)
    out = np.full(shape, np.nan, np.float32)
    log = np.full((ctas, 2, steps, 6), UNTOUCHED, np.int32)
    args = [*operands.maps()[:2], out, log, np.int32(steps)]
    variants = (*CLEAN, NO_FENCE, *(MUTANTS if ctas == 1 else PAIR_MUTANTS))
    kernels = program("output_ring.cu.j2", "variants", variants, ctas)
    return Run(launch(kernels, variant.name, args, ctas, THREADS, **options), out, log)


def expected_products(variant: Variant, operands: Operands) -> Any:
    left = operands.left[:, 0, 0].astype(np.float32)
    keys = operands.keys[0, 0, 0].astype(np.float32).reshape(BLOCKS, ROWS, -1)
    steps, parts = np.arange(steps_of(variant)), np.arange(parts_of(variant))
    return np.einsum("glc,sprc->gsplr", left, keys[(2 * steps[:, None] + parts) % BLOCKS])


def expected_log(variant: Variant, role: int) -> list[list[int]]:
    """Index, phase, column, offsets of both barriers and of the pipeline."""
    stages, stride = variant.stages, variant.parts
    first = COLUMNS - stages * stride
    return [
        [index, phase, first + stride * index, 8 * index, 8 * (stages + index), 0]
        for index, phase in ring_states(stages, steps_of(variant), phase=1 - role)
    ]


def report_of(variant: Variant, ctas: int, **options: Any) -> Report:
    return run(variant, ctas, Operands.make(0, ctas, 1, BLOCKS), **options).report


def check(variant: Variant, ctas: int, seed: int, schedule: str) -> None:
    operands = Operands.make(seed, ctas, 1, BLOCKS)
    done = run(variant, ctas, operands, seed=seed, schedule=schedule)
    assert_clean(done.report)
    np.testing.assert_array_equal(done.out, expected_products(variant, operands))
    np.testing.assert_array_equal(done.log[0, 0], expected_log(variant, 0))
    for rank in range(ctas):
        np.testing.assert_array_equal(done.log[rank, 1], expected_log(variant, 1))
    assert (done.log[1:, 0] == UNTOUCHED).all()  # the leader alone multiplies


@PAIR_OR_NOT
@pytest.mark.parametrize("variant", CLEAN, ids=str)
def test_products_pass_to_the_epilogue(variant: Variant, ctas: int, policies: Policies) -> None:
    for seed, schedule in policies:
        check(variant, ctas, seed, schedule)


@PAIR_OR_NOT
def test_more_interleavings(ctas: int) -> None:
    for seed in range(len(SCHEDULES), 4 * len(SCHEDULES)):
        check(CLEAN[2], ctas, seed, SCHEDULES[seed % len(SCHEDULES)])


@pytest.mark.parametrize("variant", MUTANTS, ids=str)
def test_mutants_are_reported(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        report = report_of(variant, 1, seed=seed, schedule=schedule)
        assert_reported(report, MUTANTS[variant])


@pytest.mark.parametrize("variant", PAIR_MUTANTS, ids=str)
def test_mutants_of_a_pair_are_reported(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        report = report_of(variant, 2, seed=seed, schedule=schedule)
        assert_reported(report, PAIR_MUTANTS[variant])


def test_loads_are_fenced_before_their_release(policies: Policies) -> None:
    for seed, schedule in policies:
        report = report_of(NO_FENCE, 1, seed=seed, schedule=schedule)
        assert report.verdict.value == "review", str(report)
        assert {finding.kind for finding in report.findings} == {"missing-tcgen05-fence"}
        # the peer's arrival, of the scope of its CTA, orders by the letter only through the fence
        report = report_of(NO_FENCE, 2, seed=seed, schedule=schedule)
        assert report.verdict.value == "isa", str(report)
        assert {finding.kind for finding in report.findings} == {"race", "missing-tcgen05-fence"}


def test_stages_must_fit_in_tensor_memory() -> None:
    source = render("output_ring.cu.j2", variants=())
    source += "\ntemplate struct OutputRingBuffer<4, 160, 1>;\n"
    with pytest.raises(CompileError, match="Tensor memory has 512 columns"):
        compile_text("too_wide", source)
