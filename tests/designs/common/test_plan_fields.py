"""The parts of plans: each field has a value, and tables are put in their places."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.designs.common.plan_fields import Tables, kernel_fields, persistent_grid
from fa4gen.designs.gemm_sm90.memory import most_stages
from fa4gen.designs.gemm_sm90.plan import plan_gemm_sm90
from fa4gen.designs.gemm_sm90.values import decide
from fa4gen.designs.registry import DESIGNS, design_of
from tests.shipped import loaded

CONFIG = load_mapping({"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e4m3"}, "any").config
PLAN = plan_gemm_sm90(CONFIG)
VALUES, CHOICES = decide(CONFIG, most_stages)
TABLES = Tables(
    summary=PLAN.summary,
    roles=PLAN.roles,
    regions=PLAN.shared,
    barriers=[replace(row, offset=0) for row in PLAN.barriers],
    tensor_maps=PLAN.tensor_maps,
    parameters=PLAN.parameters,
    threads=PLAN.launch.threads,
    grid=PLAN.launch.grid,
)


def test_nothing_of_a_plan_is_left_undecided() -> None:
    plans = [build_plan(loaded(path).config) for path in find_configs(())]
    assert {design_of(plan).name for plan in plans} == {design.name for design in DESIGNS}
    for plan in plans:
        auto = [field.name for field in fields(plan) if getattr(plan, field.name) == "auto"]
        assert auto == [], plan.name


def test_barriers_are_placed_in_their_region_and_the_launch_has_room_to_align() -> None:
    made = kernel_fields(VALUES, CHOICES, TABLES, cta_group=1)
    assert made["barriers"] == PLAN.barriers
    assert made["barriers"][0].offset == PLAN.region("barriers").offset
    assert made["launch"] == PLAN.launch
    tight = kernel_fields(VALUES, CHOICES, replace(TABLES, aligns_base=False), cta_group=1)
    saved = PLAN.launch.dynamic_shared_bytes - tight["launch"].dynamic_shared_bytes
    assert saved == PLAN.shared[0].alignment


@pytest.mark.parametrize(("cluster", "ctas"), [(None, 4), (2, 2)])
def test_a_cluster_has_as_many_ctas_as_multiply_together_unless_it_says_more(
    cluster: int | None, ctas: int
) -> None:
    made = kernel_fields(VALUES, CHOICES, replace(TABLES, cluster=cluster), cta_group=4)
    assert made["launch"].cluster == ctas


def test_the_rule_for_the_grid() -> None:
    assert persistent_grid(pairs=True).startswith("two CTAs a pair")
    assert persistent_grid(pairs=False).startswith("as many CTAs as multiprocessors")
