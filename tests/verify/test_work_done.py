"""Rescales and tiles a CTA: counted in running kernels, also in ones that lack one kind."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.emulator.coverage.counts import Coverage, RingUse
from fa4gen.render.render import render
from fa4gen.verify.coverage import exercise_of
from fa4gen.verify.family import family_of
from fa4gen.verify.ring_cases import TILES
from fa4gen.verify.verdict import CaseVerdict
from fa4gen.verify.work_done import Tiles
from tests.kernels.source_mutation import Change, Kernel, Mutant, mutated, verify

if TYPE_CHECKING:
    from fa4gen.verify.exercise import Exercise

ATTENTION = "fa4_d64_causal_bf16"
VOTE = r"__any_sync\(0xffffffffu, factor < 1.f\)"
NEVER = Mutant(
    ATTENTION, "the correction takes no factor for one that rescales",
    (Change(VOTE, "__any_sync(0xffffffffu, factor < -1.f)"),), (),
)  # fmt: skip
ALWAYS = Mutant(
    ATTENTION, "the correction rescales at every block",
    (Change(VOTE, "__any_sync(0xffffffffu, factor < 9.f)"),), (),
)  # fmt: skip
NEXT = r"index = gridDim.x \+ atomicAdd\(tile_counter, 1\)"
ONE_TILE = Mutant(
    ATTENTION, "a loader stops after its first tile",
    (Change(NEXT, "index = problem.num_tiles"),), (),
)  # fmt: skip
RESCALES = "tile/255x257"
"""A case whose last block is masked for some rows, and whose other maxima grow little."""


@cache
def original(name: str) -> Kernel:
    loaded = load_config(find_configs([name])[0])
    plan = build_plan(loaded.config)
    return Kernel.of(plan, render(plan, loaded))


def exercised(kernel: Kernel, case: str) -> Exercise:
    """Return the coverage by the cases that fit, whether or not they pass."""
    verdict, _ = verify(kernel, case, 0)
    assert verdict.exercise is not None
    return verdict.exercise


@pytest.mark.compile
def test_rescales_of_a_right_kernel() -> None:
    found = exercised(original(ATTENTION), RESCALES)
    assert found.rescales is not None
    assert found.rescales.taken > 0
    assert found.rescales.skipped > 0
    assert not list(found.rescale_gaps())
    figures = f"rescales: {found.rescales.taken} taken, {found.rescales.skipped} skipped"
    assert figures in found.summary()


@pytest.mark.compile
def test_tiles_of_a_right_kernel() -> None:
    # one case is a single tile, in the other a CTA takes all
    found = exercised(original(ATTENTION), "rings/*")
    assert found.tiles == Tiles(1, TILES)
    assert not list(found.tile_gaps())
    assert f"tiles a CTA: 1 to {TILES}" in found.summary()
    assert "none took" not in found.summary()
    assert found.data()["tiles_a_cta"] == {"least": 1, "most": TILES, "several": True}


@pytest.mark.compile
@pytest.mark.parametrize(
    ("mutant", "taken", "gap"),
    [
        (NEVER, False, "rescaling was never taken: errors in it would not show"),
        (ALWAYS, True, "rescaling was never skipped: it was taken at every block"),
    ],
    ids=["never", "always"],
)
def test_a_kernel_that_never_or_always_rescales_says_so(mutant, taken, gap) -> None:
    found = exercised(mutated(original(ATTENTION), mutant), RESCALES)
    assert found.rescales is not None
    assert (found.rescales.taken > 0) is taken
    assert (found.rescales.skipped > 0) is not taken
    assert f"rescales: {found.rescales.taken} taken" in found.summary()
    assert list(found.rescale_gaps()) == [gap]
    assert found.data()["rescales"] == asdict(found.rescales)


@pytest.mark.compile
def test_tiles_are_those_that_were_worked_on_and_not_those_that_there_are() -> None:
    found = exercised(mutated(original(ATTENTION), ONE_TILE), f"rings/{TILES}x*")
    assert found.tiles == Tiles(1, 1)
    assert "tiles a CTA: 1 to 1 (none took more than one)" in found.summary()
    assert list(found.tile_gaps()) == [
        "no CTA took more than one tile: errors between tiles would not show"
    ]


@pytest.mark.compile
@pytest.mark.parametrize(
    ("name", "tiles"),
    [
        pytest.param("d64_dense_small_bf16", Tiles(1, TILES), id="Hopper, attention"),
        pytest.param("gemm_bf16_short_sm90", Tiles(TILES, TILES), id="one warpgroup"),
        pytest.param(
            "gemm_bf16_pair_residual_sm90", Tiles(TILES, TILES), id="pairs that take turns"
        ),
        pytest.param("gemm_fp16_short_residual", Tiles(TILES, TILES), id="Blackwell, static"),
    ],
)
def test_tiles_of_other_kernels(name: str, tiles: Tiles) -> None:
    found = exercised(original(name), "rings/*")
    assert found.tiles == tiles
    assert (found.rescales is None) == name.startswith("gemm")


@pytest.mark.compile
def test_tiles_that_the_hardware_hands_out_are_counted() -> None:
    kernel = original("gemm_bf16_pair_dynamic")
    verdict, _ = verify(kernel, "rings/*", 0)
    assert verdict.passed
    [case] = verdict.cases
    found, seen = verdict.exercise, case.coverage
    assert found is not None
    assert found.tiles is not None
    assert seen is not None
    # tiles of cancelled pairs were taken by others; CTAs that ran had one of their own as well
    assert seen.cancelled > 0
    sums = seen.use_of("accum_full")
    assert sums is not None
    assert (found.tiles.least, found.tiles.most) == (sums.least, sums.most)
    assert 1 < found.tiles.most <= TILES


def test_without_products_accumulators_say_nothing_of_tiles() -> None:
    plan = original("gemm_fp16_short_residual").plan
    cases = {case.name: case for case in family_of(plan).emulated_cases()}
    depths = [cases["depth/0"], cases["size/1x1x1"]]
    for case, uses in zip(depths, ((0, 0), (1, 2)), strict=True):
        seen = Coverage("k", uses=(RingUse("accum_full", *uses),))
        found = exercise_of(plan, [CaseVerdict(case, (), coverage=seen)], whole=True)
        assert found is not None
        assert found.tiles == (Tiles(*uses) if case.k else None)
