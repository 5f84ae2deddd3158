"""acme_best of a folder made of tuning tables: it picks as the table's KernelSet does."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fa4gen.config.find import find_configs
from fa4gen.config.set_file import read_set
from fa4gen.designs.build import build_plan
from fa4gen.errors import ConfigError
from fa4gen.resources import data_root
from fa4gen.tune.family import family_called
from fa4gen.tune.kernel_set import open_set
from fa4gen.vendoring.kernels import load_configs
from fa4gen.vendoring.lock import LockedRegion, LockedTable
from fa4gen.vendoring.names import with_prefix
from fa4gen.vendoring.regions import EXTENTS, find_kernels, region_facts
from fa4gen.vendoring.standin import SimulatedDevice
from tests.vendoring.launcher.both import CLauncher, build_launcher
from tests.vendoring.launcher.shipped import PREFIX, write_launcher
from tests.vendoring.launcher.test_best import best, cost, problem_for

H200 = "nvidia_h200"
TABLES = ("gemm_bf16_sm90", "gemm_bf16_residual_sm90", "d128_causal_bf16", "d192_dense_bf16")


def table_path(name, chip=H200):
    return data_root("configs") / "tuned" / f"{chip}.yaml" / f"{name}.tuning.yaml"


@lru_cache(maxsize=1)
def vendored():
    """The plans of all kernels that the tables name, and their regions."""
    paths, table = find_kernels([str(table_path(name)) for name in TABLES])
    plans = {
        item.config.name: with_prefix(build_plan(item.config), PREFIX)
        for item in load_configs(paths)
    }
    return plans, table


@pytest.fixture(scope="module")
def of_tables(tmp_path_factory: pytest.TempPathFactory) -> CLauncher:
    plans, table = vendored()
    folder = write_launcher(tmp_path_factory.mktemp("tables"), plans, table=table)
    return build_launcher(folder)


@lru_cache(maxsize=8)
def opened(name):
    return open_set(table_path(name)), read_set(table_path(name)).followed


@pytest.mark.parametrize("name", TABLES)
@given(data=st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_it_picks_as_the_kernel_set_of_the_table(name, of_tables, data) -> None:
    kernels, regions = opened(name)
    plans, _ = vendored()
    base = next(plan for plan_name, plan in plans.items() if plan_name in kernels.names)
    family = family_called(base.kernel)
    near = data.draw(st.sampled_from(regions))
    extents = {
        extent: data.draw(st.sampled_from((low - 1, low, (low + high) // 2, high, high + 1)))
        if data.draw(st.integers(0, 3)) == 0 or low != high
        else low
        for extent, (low, high) in near.where.items()
    }
    if any(value < 1 for value in extents.values()):
        return
    if extents.get("heads", 0) % extents.get("key_heads", 1):
        return
    fields = EXTENTS[base.kernel]
    library = of_tables.on(SimulatedDevice(base.arch, 132))
    asked = {fields[extent]: value for extent, value in extents.items()}
    problem = problem_for(library, base, **asked)
    found = best(of_tables, library, problem)
    if any(region.holds(extents) for region in regions):
        assert found == kernels.choose(family.word(family.problem(extents)))
    else:
        rivals = [
            (cost(plan, problem, 132), place, other)
            for place, (other, plan) in enumerate(plans.items())
            if other in kernels.names
        ]
        assert found == min(rivals)[2]


def test_a_region_counts_where_cost_would_choose_another(of_tables) -> None:
    library = of_tables.on(SimulatedDevice("sm_90a", 132))
    plan = vendored()[0]["gemm_bf16_sm90"]
    problem = problem_for(library, plan, batch=1, m=256, n=4608, k=3584)
    found = best(of_tables, library, problem)
    kernels, _ = opened("gemm_bf16_sm90")
    assert found == kernels.choose("256x4608x3584") == "gemm_bf16_sm90_64x144_evict_both"


def test_a_region_of_another_trait_or_architecture_is_passed_over(of_tables) -> None:
    plan = vendored()[0]["gemm_bf16_sm90"]
    library = of_tables.on(SimulatedDevice("sm_90a", 132))
    sizes = {"batch": 1, "m": 256, "n": 4608, "k": 3584}
    problem = problem_for(library, plan, **sizes, residual=2)
    assert best(of_tables, library, problem).startswith("gemm_bf16_residual_sm90")
    problem = problem_for(library, plan, **sizes, b_n_major=1 - plan_b_n_major(library, plan))
    assert best(of_tables, library, problem) == "PROBLEM NO_KERNEL"
    library = of_tables.on(SimulatedDevice("sm_100a", 148))
    found = ctypes.c_void_p(1)
    status = library.best(
        of_tables.ordinal,
        ctypes.byref(problem_for(library, plan, **sizes)),
        ctypes.byref(found),
    )
    assert status
    assert found.value is None


def plan_b_n_major(library, plan):
    return problem_for(library, plan).b_n_major


def test_tables_of_two_chips_are_refused() -> None:
    tables = [str(table_path("d128_causal_bf16", chip)) for chip in (H200, "nvidia_h100_80gb_hbm3")]
    with pytest.raises(ConfigError, match="tables of several chips: NVIDIA H100 80GB HBM3, NVIDIA"):
        find_kernels(tables)


def test_tables_stand_beside_configs_and_relative_to_the_project(tmp_path) -> None:
    (tmp_path / "mine.yaml").write_text("extends: d64_dense_bf16\n")
    (tmp_path / "mine.set.yaml").write_text("kernels:\n- ./mine.yaml\n- d128_causal_bf16\n")
    paths, table = find_kernels(["gemm_bf16_sm90", "mine.set.yaml", "d128_causal_bf16"], tmp_path)
    assert [path.stem for path in paths] == ["gemm_bf16_sm90", "mine", "d128_causal_bf16"]
    assert table is None
    assert paths[2].resolve() == find_configs(["d128_causal_bf16"])[0].resolve()


def test_rows_of_the_launcher() -> None:
    kernels = [SimpleNamespace(name=name, family="gemm") for name in ("one", "two")]
    regions = (
        LockedRegion(kernel="two", where={"k": (5, 5), "m": (1, 2**40)}),
        LockedRegion(kernel="one", where={"depth": (1, 2)}),
    )
    table = LockedTable(chip="NVIDIA H200", regions=regions)
    (row,) = region_facts(table, kernels)
    largest = 2**31 - 1
    assert (row.kernel, row.least) == (1, (1, 0, 5, 0, 0))
    assert row.most == (largest, largest, 5, largest, largest)
    assert region_facts(table, kernels[:1]) == region_facts(None, kernels) == ()
    with pytest.raises(
        ConfigError, match="the tuning table has two, which the folder does not have"
    ):
        region_facts(table, [kernels[0], kernels[0]])


def test_without_a_table_the_launcher_has_no_regions(tmp_path) -> None:
    plans = {name: plan for name, plan in vendored()[0].items() if name.startswith("d128")}
    source = write_launcher(tmp_path, plans) / "src" / "launcher.c"
    assert "region" not in source.read_text(encoding="utf-8")
