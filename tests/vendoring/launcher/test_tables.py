"""acme_best among the kernels of the tuning tables that come with fa4gen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.config.load import load_config
from fa4gen.config.set_file import read_set
from fa4gen.designs.build import build_plan
from fa4gen.errors import MissingCapabilityError
from fa4gen.tune.committed import committed_tables
from fa4gen.vendoring.host_build import build_library
from fa4gen.vendoring.names import with_prefix
from fa4gen.vendoring.standin import SimulatedDevice, StandIn
from tests.vendoring.launcher.both import CLauncher
from tests.vendoring.launcher.shipped import PREFIX, WARNINGS, write_launcher
from tests.vendoring.launcher.test_best import best, cost, problem_for

if TYPE_CHECKING:
    from fa4gen.config.set_file import KernelSetFile
    from fa4gen.designs.common.plans import Plan

H200 = SimulatedDevice("sm_90a", 132)
TABLES = {file.base: file for file in map(read_set, committed_tables("NVIDIA H200"))}
RENAMED = {"rows": "query_rows", "keys": "key_rows", "heads": "query_heads"}
"""Extents of a table that a problem in C has another name for."""


def plans_of(file: KernelSetFile) -> dict[str, Plan]:
    loaded = [load_config(path) for path in file.configs]
    return {one.config.name: with_prefix(build_plan(one.config), PREFIX) for one in loaded}


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> CLauncher:
    """One library with the kernels of all tables, which have different traits."""
    folder = tmp_path_factory.mktemp("tables") / "acme"
    plans = {name: plan for file in TABLES.values() for name, plan in plans_of(file).items()}
    write_launcher(folder, plans)
    try:
        stand_in = StandIn()
        library = build_library(
            folder, folder / "tables.so", stand_in=stand_in.path, flags=["-O0", *WARNINGS]
        )
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    return CLauncher(library, stand_in)


@pytest.mark.parametrize("base", TABLES)
def test_c_users_get_a_kernel_of_the_table_for_each_of_its_problems(
    base: str, launcher: CLauncher
) -> None:
    file = TABLES[base]
    plans = plans_of(file)
    library = launcher.on(H200)
    for region in file.regions:
        ends = {RENAMED.get(name, name): value for name, value in region.where.items()}
        for place in (0, 1):
            extents = {name: value[place] for name, value in ends.items()}
            problem = problem_for(library, next(iter(plans.values())), **extents)
            chosen = best(launcher, library, problem)
            costs = {n: cost(plan, problem, H200.multiprocessors) for n, plan in plans.items()}
            assert costs[chosen] == min(costs.values())
            # what the table has for the region can be called by its name
            assert library.kernel(f"{PREFIX}_{region.kernel}").handle
