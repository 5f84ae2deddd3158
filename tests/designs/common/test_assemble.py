"""A plan's fields are found by their names."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from fa4gen.config.load import load_mapping
from fa4gen.designs.common.assemble import Tables, assemble, persistent_grid
from fa4gen.designs.gemm_sm90.memory import most_stages
from fa4gen.designs.gemm_sm90.model import HopperGemmPlan
from fa4gen.designs.gemm_sm90.plan import plan_gemm_sm90
from fa4gen.designs.gemm_sm90.values import decide

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
GIVEN = {
    "scheduler": "static",
    "named_barriers": (),
    "producer_registers": 40,
    "consumer_registers": 232,
}


def test_fields_come_from_what_is_given_the_tables_the_values_and_the_config() -> None:
    plan = assemble(HopperGemmPlan, VALUES, CHOICES, TABLES, **GIVEN)
    assert plan == PLAN
    assert (CONFIG.BN, plan.BN) == ("auto", VALUES.BN)
    assert (CONFIG.out_dtype, plan.out_dtype) == ("auto", "bf16")
    given = assemble(HopperGemmPlan, VALUES, CHOICES, TABLES, **{**GIVEN, "BN": 64})
    assert given == replace(PLAN, BN=64)


def test_barriers_are_placed_in_their_region_and_the_launch_has_room_to_align() -> None:
    plan = assemble(HopperGemmPlan, VALUES, CHOICES, replace(TABLES, aligns_base=False), **GIVEN)
    assert plan.barriers[0].offset == plan.region("barriers").offset
    saved = PLAN.launch.dynamic_shared_bytes - plan.launch.dynamic_shared_bytes
    assert saved == PLAN.shared[0].alignment
    assert plan.launch.cluster == plan.cta_group


def test_what_nobody_decided_is_an_error() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wider(HopperGemmPlan):
        colour: str

    with pytest.raises(ValueError, match="neither values nor config have colour"):
        assemble(Wider, VALUES, CHOICES, TABLES, **GIVEN)
    undecided = replace(VALUES, num_epi_stages="auto")  # nothing else is computed from it
    with pytest.raises(ValueError, match="num_epi_stages of the plan is still auto"):
        assemble(HopperGemmPlan, undecided, CHOICES, TABLES, **GIVEN)


def test_the_rule_for_the_grid() -> None:
    assert persistent_grid(pairs=True).startswith("two CTAs a pair")
    assert persistent_grid(pairs=False).startswith("as many CTAs as multiprocessors")
