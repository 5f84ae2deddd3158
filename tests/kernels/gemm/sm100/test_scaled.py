"""Products with block scales in the emulator: forms, tiles, tails, pairs, and their mutants."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.kernels.gemm.emulation import Problem, emulate, gemm_kernel, is_told
from tests.kernels.gemm.sm100.scaled_mutants import BLOCKS, CONFIGS, MUTANTS
from tests.kernels.source_mutation import mutated

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

Keys = dict[str, Any]
FORMS: dict[str, Keys] = {
    "mxfp8": {"dtype": "fp8_e4m3", "scales": "mxfp8"},
    "mxfp4": {"dtype": "fp4_e2m1", "scales": "mxfp4"},
    "nvfp4": {"dtype": "fp4_e2m1", "scales": "nvfp4"},
}
SEVERAL = Problem(300, 420, 600, batch=2)
"""Tails in each dimension, several tiles for each CTA, blocks that end within an atom of scales."""


@cache
def _kernel(keys: tuple[tuple[str, Any], ...]) -> Kernel:
    return gemm_kernel(dict(keys))


def check(keys: Keys, problem: Problem, seed: int = 0) -> None:
    outcome = emulate(_kernel(tuple(sorted(keys.items()))), problem, seed)
    assert outcome.failure == "", f"{keys}, {problem}, seed {seed}"


@pytest.mark.compile
@pytest.mark.parametrize("cta_group", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_elements_count_times_their_scales(form: str, cta_group: int) -> None:
    check({**FORMS[form], "cta_group": cta_group}, SEVERAL)


@pytest.mark.compile
@pytest.mark.parametrize("columns", [64, 128, 192, 256])
@pytest.mark.parametrize("cta_group", [1, 2])
def test_tiles_of_any_width(cta_group: int, columns: int) -> None:
    for seed, form in enumerate(("mxfp8", "nvfp4")):
        keys = {**FORMS[form], "cta_group": cta_group, "BN": columns, "num_accum_stages": 1}
        check(keys, Problem(270, 500, 300), seed)


@pytest.mark.compile
@pytest.mark.parametrize("majors", ["kn", "mk", "mn"])
@pytest.mark.parametrize("dtype", ["fp8_e4m3", "fp8_e5m2"])
def test_operands_of_8_bits_in_either_order(dtype: str, majors: str) -> None:
    keys = {"dtype": dtype, "scales": "mxfp8", "a_major": majors[0], "b_major": majors[1]}
    check({**keys, "cta_group": 1, "residual": "matrix"}, Problem(140, 270, 300))
    check({**keys, "cta_group": 2, "BN": 128}, Problem(270, 140, 300), 1)


@pytest.mark.compile
@pytest.mark.parametrize("depth", [128, 256])
@pytest.mark.parametrize("form", FORMS)
def test_stages_of_either_depth(form: str, depth: int) -> None:
    check({**FORMS[form], "cta_group": 1, "BN": 128, "BK": depth}, Problem(140, 140, 700))


@pytest.mark.compile
@pytest.mark.parametrize("stages", [1, 2, 3])
def test_rings_of_any_length(stages: int) -> None:
    for cta_group in (1, 2):
        keys = {"cta_group": cta_group, "BN": 64, "num_stages": stages, "residual": "row"}
        check({**FORMS["nvfp4"], **keys}, Problem(260, 130, 2100), stages)


@pytest.mark.compile
@pytest.mark.parametrize("cta_group", [1, 2])
def test_tiles_handed_out_by_the_hardware(cta_group: int) -> None:
    keys = {"cta_group": cta_group, "scheduler": "dynamic"}
    check({**FORMS["mxfp4"], **keys, "BN": 64}, Problem(600, 200, 520))


PLAIN: Keys = {"scale_order": "row_major"}


@pytest.mark.compile
@pytest.mark.parametrize("cta_group", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_plain_scales_are_arranged(form: str, cta_group: int) -> None:
    keys = {**FORMS[form], **PLAIN, "cta_group": cta_group}
    check(keys, SEVERAL)
    check(keys, Problem(140, 270, 1600, scale_step=2), 1)


@pytest.mark.compile
@pytest.mark.parametrize(("k", "padding"), [(1024, 0), (1536, 16), (640, 0), (640, 4), (580, 13)])
def test_plain_scales_are_loaded_as_their_rows_begin(k: int, padding: int) -> None:
    for seed, form in enumerate(("mxfp4", "nvfp4")):
        keys = {**FORMS[form], **PLAIN, "cta_group": 1 + seed, "BN": 192 if seed else 64}
        check(keys, Problem(140, 200, k, batch=2, scale_padding=padding), seed)


@pytest.mark.compile
@pytest.mark.parametrize("cta_group", [1, 2])
def test_plain_scales_of_tiles_handed_out_by_the_hardware(cta_group: int) -> None:
    keys = {"cta_group": cta_group, "scheduler": "dynamic", "residual": "matrix", "num_stages": 1}
    check({**FORMS["nvfp4"], **PLAIN, **keys, "BN": 64}, Problem(600, 200, 520))


@pytest.mark.compile
@pytest.mark.parametrize("size", [(1, 1, 2), (128, 192, 256), (1, 400, 40), (140, 10, 0)], ids=str)
def test_sizes(size: tuple[int, int, int]) -> None:
    for seed, form in enumerate(FORMS):
        check({**FORMS[form], "cta_group": 1 + seed % 2}, Problem(*size), seed)


@pytest.mark.seeds
@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_planned_multiplies_under_many_seeds(seed: int) -> None:
    random = Random(seed)
    keys = {
        **FORMS[random.choice(list(FORMS))],
        "cta_group": random.choice((1, 2)),
        "BN": random.choice((64, 128, 192, 256)),
        "num_accum_stages": random.choice((1, "auto")),
        "num_stages": random.choice((1, 2, 3, "auto")),
        "residual": random.choice(("none", "matrix", "row", "column")),
        "scheduler": random.choice(("static", "dynamic")),
        "scale_order": random.choice(("arranged", "row_major")),
    }
    if keys["BN"] == 256:
        keys["num_accum_stages"] = 1
    m, n, k = random.randint(1, 500), random.randint(1, 500), 2 * random.randint(0, 700)
    step, padding = random.choice((1, 1, 3)), random.choice((0, 3, 16))
    check(keys, Problem(m, n, k, scale_step=step, scale_padding=padding), seed)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_can_still_be_made(name: str) -> None:
    kernel = gemm_kernel(CONFIGS[MUTANTS[name].config])
    assert mutated(kernel, MUTANTS[name]) != kernel


@pytest.mark.compile
@pytest.mark.parametrize("config", CONFIGS)
def test_the_kernel_without_it_is_clean(config: str) -> None:
    assert emulate(gemm_kernel(CONFIGS[config]), BLOCKS, 0).failure == ""


@pytest.mark.compile
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_reported(name: str) -> None:
    _check_told(name, range(1))


@pytest.mark.seeds
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_reported_whatever_the_schedule(name: str) -> None:
    _check_told(name, range(20))


def _check_told(name: str, seeds: range) -> None:
    mutant = MUTANTS[name]
    kernel = mutated(gemm_kernel(CONFIGS[mutant.config]), mutant)
    for seed in seeds:
        outcome = emulate(kernel, mutant.problem, seed)
        assert is_told(outcome, mutant.found, kernel), f"seed {seed}: {outcome.failure or 'passed'}"
