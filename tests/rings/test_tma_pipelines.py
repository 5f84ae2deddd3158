"""TMAProducerPipeline and TMAConsumerPipeline: TMA fills a ring, MMAs read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.errors import CompileError
from tests.rings.harness import (
    LANES,
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

MAX_STEPS = 16
pytestmark = pytest.mark.compile

KEYS = tuple(Variant("keys", stages, parts) for parts in (1, 2, 4) for stages in range(1, 6))
VALUES = tuple(Variant("values", stages) for stages in range(1, 6))
FUSED = tuple(Variant("fused", stages) for stages in range(2, 6))
PAIRS = (Variant("keys", 3, 2), Variant("values", 2), Variant("fused", 3))

# A mutant is reported as one of these, whatever the interleaving.
MUTANTS: dict[Variant, set[str]] = {
    Variant("keys", 2, 2, "no_wait"): {"race"},
    Variant("values", 1, 1, "no_wait"): {"race"},
    Variant("keys", 2, 2, "no_acquire"): {"race", "over-arrival"},
    Variant("keys", 2, 2, "early_release"): {"race"},
    Variant("values", 1, 1, "early_release"): {"race"},
    Variant("keys", 2, 1, "double_release"): {"phase-lap"},
    Variant("keys", 2, 2, "no_flip"): {"race", "deadlock"},
    Variant("values", 1, 1, "no_flip"): {"race", "deadlock"},
    Variant("keys", 2, 2, "first_phase"): {"deadlock"},
    Variant("fused", 3, 1, "first_slot"): {"race", "deadlock"},
}
PAIR_MUTANTS: dict[Variant, set[str]] = {
    Variant("keys", 2, 2, "early_release"): {"race"},
    Variant("values", 1, 1, "no_flip"): {"race", "deadlock"},
}
SINGLE = (*KEYS, *VALUES, *FUSED, *MUTANTS)
PAIR = (*PAIRS, *PAIR_MUTANTS)


def steps_of(variant: Variant) -> int:
    """Three rounds and a bit; even, since keys and values take turns in a fused ring."""
    return min(MAX_STEPS, 3 * variant.stages + 2) // 2 * 2


def run(
    variant: Variant, *, ctas: int = 1, skipped: int = 0, operands: Operands | None = None,
    **options: Any,
) -> Run:  # fmt: skip
    steps = steps_of(variant)
    operands = operands or Operands.make(0, ctas, variant.parts, steps)
    out = np.full((ctas, steps, LANES, ROWS), np.nan, np.float32)
    log = np.full((ctas, 2, steps, variant.parts, 5), UNTOUCHED, np.int32)
    args = [*operands.maps(), out, log, np.int32(steps), np.uint32(skipped)]
    kernels = program("rings.cu.j2", "rings", SINGLE if ctas == 1 else PAIR, ctas)
    return Run(launch(kernels, variant.name, args, ctas, **options), out, log)


def expected_product(variant: Variant, operands: Operands, step: int) -> Any:
    if variant.kind == "keys":
        return operands.key_product(step)
    if variant.kind == "values":
        return operands.value_product(step)
    return (operands.value_product if step % 2 else operands.key_product)(step // 2)


def expected_log(variant: Variant, role: int, ctas: int) -> Any:
    """Index, phase, offsets of both barriers, offset of the slot (or part, for the producer)."""
    steps, parts, stages = steps_of(variant), variant.parts, variant.stages
    part_bytes = (1024 if variant.kind == "keys" else 2048) // ctas
    log = np.empty((steps, parts, 5), np.int64)
    for step, (index, phase) in enumerate(ring_states(stages, steps, phase=1 - role)):
        for part in range(parts):
            log[step, part] = (
                index,
                phase,
                8 * (parts * index + part),
                8 * (parts * stages + parts * index + part),
                part_bytes * (parts * index + (part if role == 0 else 0)),
            )
    return log


def check(variant: Variant, ctas: int, seed: int, schedule: str) -> None:
    operands = Operands.make(seed, ctas, variant.parts, steps_of(variant))
    done = run(variant, ctas=ctas, operands=operands, seed=seed, schedule=schedule)
    assert_clean(done.report)
    for step in range(steps_of(variant)):
        np.testing.assert_array_equal(done.out[:, step], expected_product(variant, operands, step))
    for rank in range(ctas):
        np.testing.assert_array_equal(done.log[rank, 0], expected_log(variant, 0, ctas))
    np.testing.assert_array_equal(done.log[0, 1], expected_log(variant, 1, ctas))
    assert (done.log[1:, 1] == UNTOUCHED).all()  # the leader alone multiplies


@pytest.mark.parametrize("variant", [*KEYS, *VALUES, *FUSED], ids=str)
def test_blocks_arrive_in_order(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        check(variant, 1, seed, schedule)


@pytest.mark.parametrize("variant", PAIRS, ids=str)
def test_a_pair_shares_the_leaders_barriers(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        check(variant, 2, seed, schedule)


@pytest.mark.parametrize("variant", [KEYS[1], KEYS[8], VALUES[0], FUSED[1]], ids=str)
def test_release_arrives_without_a_product(variant: Variant) -> None:
    operands = Operands.make(0, 1, variant.parts, steps_of(variant))
    skipped = 0b0110_1101_0101_0110
    # Unchecked: a commit that tracks no product orders nothing, and one copy follows another.
    done = run(variant, skipped=skipped, operands=operands, checks=False)
    assert_clean(done.report)
    for step in range(steps_of(variant)):
        if skipped >> step & 1:
            assert np.isnan(done.out[0, step]).all()
        else:
            expected = expected_product(variant, operands, step)
            np.testing.assert_array_equal(done.out[:, step], expected)
    np.testing.assert_array_equal(done.log[0, 1], expected_log(variant, 1, 1))


@pytest.mark.parametrize("variant", MUTANTS, ids=str)
def test_mutants_are_reported(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        assert_reported(run(variant, seed=seed, schedule=schedule).report, MUTANTS[variant])


@pytest.mark.parametrize("variant", PAIR_MUTANTS, ids=str)
def test_mutants_of_a_pair_are_reported(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        report = run(variant, ctas=2, seed=seed, schedule=schedule).report
        assert_reported(report, PAIR_MUTANTS[variant])


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_constants(parts: int, group: int) -> None:
    # as states.cu.j2 sets them
    rows, columns, value_rows, value_columns, size = 96, 64, 80, 192, 2
    part_bytes = rows * columns * size // group
    value_bytes = value_rows * value_columns * size // group
    out = np.full((2, 9), UNTOUCHED, np.int32)
    entry = f"constants_{parts}_{group}"
    assert_clean(launch(program("states.cu.j2", "states", ()), entry, [out]))
    # is_k_major, num_qk_stages_effective, BK, BMN, full_kv_bytes, staged_k_bytes; the
    # producer's num_qk_stages_effective, slot_bytes, part_bytes
    assert out.tolist() == [
        [1, parts, columns, rows, parts * part_bytes, part_bytes, parts,
         parts * part_bytes, part_bytes],
        [0, 1, value_rows, value_columns, value_bytes, part_bytes, 1,
         value_bytes, value_bytes],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("is_k", "call", "message"),
    [
        *((False, call, "This pipeline holds V") for call in ("get_k()", "wait_k()")),
        (False, "release_k(1)", "This pipeline holds V"),
        *((True, call, "This pipeline holds K") for call in ("get_v()", "wait_v()")),
        (True, "release_v(1)", "This pipeline holds K"),
    ],
)
def test_keys_are_not_taken_for_values(is_k: bool, call: str, message: str) -> None:
    source = render("states.cu.j2", states=())
    source += f"""
extern "C" __global__ void wrong_roles() {{
  TMAConsumerPipeline<Config<1, 1>, {str(is_k).lower()}> pipeline{{0, 0, 0, 0, 0}};
  pipeline.{call};
}}
"""
    with pytest.raises(CompileError, match=message):
        compile_text("wrong_roles", source)
