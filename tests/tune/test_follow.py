"""Between the problems that a table measured, the model decides whether its kernel is good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.config.set_file import Region, read_set
from fa4gen.tune.candidates import find_candidates, rank
from fa4gen.tune.committed import committed_tables
from fa4gen.tune.family import family_called
from fa4gen.tune.follow import between, is_good, still_good
from fa4gen.tune.kernel_set import KernelSet, load_candidates
from fa4gen.tune.model.chips import H200

if TYPE_CHECKING:
    from fa4gen.config.set_file import KernelSetFile

GEMM = family_called("gemm")
BASE = "gemm_bf16_sm90"


def table_of(base: str) -> KernelSetFile:
    return read_set(next(p for p in committed_tables(H200.name) if p.name.startswith(f"{base}.")))


@pytest.fixture(scope="module")
def auto() -> KernelSet:
    base = load_config(find_configs([BASE])[0])
    return KernelSet(find_candidates(base), tuned=base, chip=H200.name)


def us(kernels: KernelSet, name: str, problem: str) -> float:
    plan = kernels._kernels[name].candidate.plan
    return GEMM.predict(plan, GEMM.parse_problem(problem), H200).us


def test_two_waves_where_one_was_measured(auto: KernelSet) -> None:
    """107 us were measured with the region's kernel, of which 256 rows are one wave."""
    assert auto.choose("256x4096x14336") == f"{BASE}_64x128"
    problem = "333x4096x14336"
    chosen = auto.choose(problem)
    assert us(auto, chosen, problem) < 0.75 * us(auto, f"{BASE}_64x128", problem)


@pytest.mark.parametrize("problem", ["250x4096x14336", "4000x4096x14336"])
def test_near_a_measured_problem_its_kernel_is_taken(auto: KernelSet, problem: str) -> None:
    regions = table_of(BASE).regions
    extents = GEMM.extents(GEMM.parse_problem(problem))
    (region,) = (one for one in regions if one.holds(extents))
    assert auto.choose(problem) == region.kernel


def regret(pick: Any, candidates: dict[str, Any], problem: Any) -> float:
    best = min(one.prediction.us for one in rank(candidates.values(), problem, H200))
    return max(1.0, GEMM.predict(candidates[pick].plan, problem, H200).us / best)


@pytest.mark.parametrize("base", [BASE, "gemm_bf16_residual_sm90", "gemm_fp8_sm90"])
def test_predicted_regret_in_the_regions_of_a_table(base: str) -> None:
    """The regret is that of the table's kernels alone, which vendored folders have."""
    file = table_of(base)
    candidates = {one.name: one for one in load_candidates(file)}
    before, after = [], []
    for region in file.regions:
        extents = GEMM.extents(GEMM.parse_problem(region.problem))
        low, high = region.where["m"]
        for m in {low, (low + high) // 2, high} - {extents["m"]}:
            problem = GEMM.problem({**extents, "m": m})
            named = next(one for one in file.followed if one.holds(GEMM.extents(problem)))
            before.append(regret(region.kernel, candidates, problem))
            after.append(regret(named.kernel, candidates, problem))
    assert sum(after) / len(after) < 1.02
    assert max(after) < min(1.25, max(before))
    assert sum(before) / len(before) > 1.02


def test_left_out_problems_lose_little() -> None:
    """Problems of the table as if they had not been measured, beside their neighbours' kernels."""
    file = table_of(BASE)
    base = load_config(find_configs([BASE])[0])
    candidates = {one.name: one for one in (*load_candidates(file), *find_candidates(base))}
    after = []
    for region in file.regions[::5]:
        problem = GEMM.parse_problem(region.problem)
        ranked = rank(candidates.values(), problem, H200)
        best = min(one.prediction.us for one in ranked)
        for other in file.regions:
            if other is region or any(other.where[e] != region.where[e] for e in ("n", "k")):
                continue
            own = candidates[other.kernel].plan
            good = still_good(GEMM, other, own, ranked[0], problem, H200)
            pick = candidates[other.kernel] if good else ranked[0].candidate
            after.append(GEMM.predict(pick.plan, problem, H200).us / best)
    assert max(after) <= 1.12
    assert sum(after) / len(after) <= 1.02


def test_a_kernel_that_the_model_never_chooses_has_to_be_faster() -> None:
    (config,) = find_configs(["gemm_bf16_m64_residual_sm90"])
    candidates = find_candidates(load_config(config))
    problem = GEMM.parse_problem("1x8192x28672")
    first = rank(candidates, problem, H200)[0]
    assert first.candidate.plan.BM <= 32  # 64 rows took 1.4 times as long as addmm
    own = next(one for one in candidates if one.source == "config")
    assert GEMM.predict(own.plan, problem, H200).us < GEMM.alike * first.prediction.us
    assert not is_good(GEMM, own.plan, first, problem, H200)


def test_regions_of_two_axes_and_without_a_problem_have_no_parts() -> None:
    file = table_of("d128_dense_bf16")
    candidates = {one.name: one for one in load_candidates(file)}
    assert between(family_called("attention"), file.regions, candidates, H200) == []
    region = Region(where={"m": (1, 4096)}, kernel=BASE)
    products = {one.name: one for one in load_candidates(table_of(BASE))}
    assert between(GEMM, [region], products, H200) == []
