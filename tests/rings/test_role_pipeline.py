"""RolePipeline: threads to threads, MMAs to threads and back, a role that waits for its MMAs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.rings.harness import (
    LANES,
    PANEL,
    ROWS,
    UNTOUCHED,
    Operands,
    Run,
    Variant,
    assert_clean,
    assert_reported,
    launch,
    program,
    ring_states,
    small_integers,
)

if TYPE_CHECKING:
    from fa4gen.emulator import Report
    from tests.rings.conftest import Policies

STEPS = 7
pytestmark = pytest.mark.compile

THREADS = tuple(Variant("threads", stages, parts) for stages in (1, 2) for parts in (1, 2, 3))
PRODUCTS = tuple(Variant("products", stages) for stages in (1, 2))
SHARES = tuple(Variant("shares", stages, parts) for stages in (1, 2) for parts in (1, 2, 3))
DRAIN = Variant("drain", 1)
# A mutant is reported as one of these, whatever the interleaving.
MUTANTS: dict[Variant, set[str]] = {
    Variant("threads", 2, 3, "no_wait"): {"race", "uninitialised"},
    Variant("threads", 1, 2, "no_acquire"): {"race", "over-arrival", "deadlock"},
    Variant("threads", 2, 1, "early_release"): {"race", "uninitialised"},
    Variant("threads", 1, 1, "no_flip"): {"race", "deadlock"},
    Variant("threads", 2, 2, "no_flip"): {"race", "deadlock"},
    Variant("products", 2, 1, "no_wait"): {"race", "uninitialised"},
    Variant("products", 2, 1, "no_acquire"): {"race", "over-arrival", "deadlock"},
    Variant("products", 1, 1, "thread_commit"): {"race"},
    Variant("shares", 2, 2, "no_wait"): {"race", "uninitialised"},
    Variant("shares", 1, 2, "no_acquire"): {"race", "over-arrival", "deadlock"},
    Variant("shares", 1, 1, "early_release"): {"race", "uninitialised"},
    Variant("drain", 1, 1, "no_wait"): {"race"},
}
PAIR_MUTANTS: dict[Variant, set[str]] = {
    Variant("products", 2, 1, "no_acquire"): {"race", "over-arrival", "deadlock"},
    Variant("shares", 2, 2, "no_wait"): {"race", "uninitialised"},
    Variant("shares", 1, 1, "early_release"): {"race", "uninitialised"},
}
SINGLE = (*THREADS, *PRODUCTS, *SHARES, DRAIN, *MUTANTS)
PAIR = (*PRODUCTS, *SHARES, *PAIR_MUTANTS)


def expected_log(variant: Variant, role: int) -> Any:
    """Index, phase, offset of each part's barrier, offset of the consumer's, 0."""
    stages, parts = variant.stages, variant.parts
    return [
        [
            [index, phase, 8 * (parts * index + part), 8 * (parts * stages + index), 0]
            for part in range(parts)
        ]
        for index, phase in ring_states(stages, STEPS, phase=1 - role)
    ]


def run_threads(variant: Variant, **options: Any) -> tuple[Run, Any]:
    shape = (STEPS, variant.parts, LANES)
    words = np.random.default_rng(options.get("seed", 0)).integers(0, 2**31, shape, np.uint32)
    out = np.zeros_like(words)
    log = np.full((1, 2, STEPS, variant.parts, 5), UNTOUCHED, np.int32)
    args = [words, out, log, np.int32(STEPS)]
    report = launch(program("roles.cu.j2", "roles", SINGLE), variant.name, args, **options)
    return Run(report, out, log), np.roll(words, -1, axis=2)


def run_products(variant: Variant, ctas: int, operands: Operands, **options: Any) -> Run:
    out = np.full((ctas, STEPS, LANES, ROWS), np.nan, np.float32)
    log = np.full((ctas, 2, STEPS, 1, 5), UNTOUCHED, np.int32)
    keys = operands.maps()[1] if variant.kind == "products" else operands.stored_keys()
    args = [operands.maps()[0], keys, out, log, np.int32(STEPS)]
    kernels = program("roles.cu.j2", "roles", SINGLE if ctas == 1 else PAIR, ctas)
    return Run(launch(kernels, variant.name, args, ctas, **options), out, log)


def run_shares(variant: Variant, ctas: int, **options: Any) -> tuple[Run, Any]:
    parts, seed = variant.parts, options.get("seed", 0)
    shares = small_integers(seed, ctas, STEPS, parts, 128, 2 * PANEL)
    operands = Operands.make(seed, ctas, 2 * parts, 1)
    out = np.full((ctas, STEPS, LANES, ROWS), np.nan, np.float32)
    log = np.full((ctas, 2, STEPS, parts, 5), UNTOUCHED, np.int32)
    args = [operands.maps()[1], shares.view(np.uint16), out, log, np.int32(STEPS)]
    kernels = program("roles.cu.j2", "roles", SINGLE if ctas == 1 else PAIR, ctas)
    report = launch(kernels, variant.name, args, ctas, 160, **options)
    left = shares[..., :LANES, :].astype(np.float32).reshape(ctas, STEPS, parts, LANES, 2, PANEL)
    keys = operands.keys[0, 0].astype(np.float32).reshape(parts, 2, ROWS, PANEL)
    return Run(report, out, log), np.einsum("gsplhk,phrk->gslr", left, keys)


def check_products(done: Run, operands: Operands) -> None:
    assert_clean(done.report)
    for step in range(STEPS):
        np.testing.assert_array_equal(done.out[:, step], operands.key_product(step))


def report_of(variant: Variant, ctas: int, **options: Any) -> Report:
    if variant.kind == "threads":
        return run_threads(variant, **options)[0].report
    if variant.kind == "shares":
        return run_shares(variant, ctas, **options)[0].report
    return run_products(variant, ctas, Operands.make(0, ctas, 1, STEPS), **options).report


@pytest.mark.parametrize("variant", THREADS, ids=str)
def test_threads_hand_over_in_parts(variant: Variant, policies: Policies) -> None:
    for seed, schedule in policies:
        done, expected = run_threads(variant, seed=seed, schedule=schedule)
        assert_clean(done.report)
        np.testing.assert_array_equal(done.out, expected)
        for role in range(2):
            np.testing.assert_array_equal(done.log[0, role], expected_log(variant, role))


@pytest.mark.parametrize("ctas", [1, 2], ids=["single", "pair"])
@pytest.mark.parametrize("variant", PRODUCTS, ids=str)
def test_products_are_handed_over_by_commit(
    variant: Variant, policies: Policies, ctas: int
) -> None:
    for seed, schedule in policies:
        operands = Operands.make(seed, ctas, 1, STEPS)
        done = run_products(variant, ctas, operands, seed=seed, schedule=schedule)
        check_products(done, operands)
        np.testing.assert_array_equal(done.log[0, 0], expected_log(variant, 0))
        for rank in range(ctas):
            np.testing.assert_array_equal(done.log[rank, 1], expected_log(variant, 1))
        assert (done.log[1:, 0] == UNTOUCHED).all()  # the leader alone multiplies


@pytest.mark.parametrize("ctas", [1, 2], ids=["single", "pair"])
@pytest.mark.parametrize("variant", SHARES, ids=str)
def test_threads_of_all_ctas_hand_over_to_the_leader(
    variant: Variant, ctas: int, policies: Policies
) -> None:
    for seed, schedule in policies:
        done, expected = run_shares(variant, ctas, seed=seed, schedule=schedule)
        assert_clean(done.report)
        np.testing.assert_array_equal(done.out, expected)
        for rank in range(ctas):
            np.testing.assert_array_equal(done.log[rank, 0], expected_log(variant, 0))
        np.testing.assert_array_equal(done.log[0, 1], expected_log(variant, 1))
        assert (done.log[1:, 1] == UNTOUCHED).all()  # the leader alone multiplies


def test_a_producer_of_one_slot_waits_for_the_products_committed_last(policies: Policies) -> None:
    for seed, schedule in policies:
        operands = Operands.make(seed, 1, 1, STEPS)
        done = run_products(DRAIN, 1, operands, seed=seed, schedule=schedule)
        check_products(done, operands)
        # there is no consumer_mbar
        assert done.log[0, 0, :, 0, :3].tolist() == [
            [index, phase, 0] for index, phase in ring_states(1, STEPS, phase=1)
        ]


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
