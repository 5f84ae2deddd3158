from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4gen.designs.attention_sm90.config import HopperAttentionConfig
from fa4gen.designs.attention_sm90.tuning import tuning_of
from fa4gen.designs.common.attention_model import AttentionPlan
from fa4gen.designs.common.model import Choice

ConfigOf = Callable[..., HopperAttentionConfig]
PlanOf = Callable[..., AttentionPlan]
MASKS = ("none", "causal", {"sliding_window": 1024})


def choice(plan: AttentionPlan, key: str) -> Choice:
    return {row.key: row for row in plan.choices}[key]


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("depth", [64, 96, 128, 192, 256])
def test_auto_takes_what_was_measured(
    config_of: ConfigOf, plan_of: PlanOf, mask: object, depth: int
) -> None:
    tuning = tuning_of(config_of(depth=depth, mask=mask))
    plan = plan_of(depth=depth, mask=mask)
    assert plan.num_consumer_warpgroups == tuning.num_consumer_warpgroups
    assert plan.BN == tuning.BN
    assert plan.num_pv_chunks_in_flight == tuning.num_pv_chunks_in_flight
    assert plan.overlap_epilogue == tuning.overlap_epilogue
    assert plan.num_kv_stages == 2
    assert (plan.epilogue, plan.scheduler, plan.ping_pong) == ("direct", "dynamic", False)


@pytest.mark.parametrize("mask", MASKS, ids=str)
def test_multi_head_latent_attention_has_three_warpgroups(plan_of: PlanOf, mask: object) -> None:
    plan = plan_of(depth=192, value_depth=128, mask=mask)
    assert (plan.BM, plan.BN, plan.num_kv_stages) == (192, 96, 2)
    assert choice(plan, "value_depth") == Choice("value_depth", 128, "config", "")
    assert choice(plan_of(), "value_depth") == Choice("value_depth", 128, "auto", "as depth")


@pytest.mark.parametrize(("depth", "value_depth"), [(64, 256), (256, 64), (128, 192), (96, 128)])
def test_other_pairs_take_the_tile_of_the_deeper_one(
    plan_of: PlanOf, depth: int, value_depth: int
) -> None:
    plan, deeper = plan_of(depth=depth, value_depth=value_depth), max(depth, value_depth)
    assert (plan.BM, plan.BN) == (plan_of(depth=deeper).BM, plan_of(depth=deeper).BN)
    assert plan.panel_columns == (32 if depth == 96 else 64)


@pytest.mark.parametrize(("depth", "stages"), [(64, 4), (96, 4), (128, 4), (192, 3), (256, 2)])
def test_few_keys_have_narrow_blocks_and_as_many_stages_as_fit(
    plan_of: PlanOf, depth: int, stages: int
) -> None:
    plan = plan_of(depth=depth, mask={"sliding_window": 512})
    assert (plan.BN, plan.num_kv_stages) == (64, stages)
    wide = plan_of(depth=depth, mask={"sliding_window": 513})
    assert wide.BN > 64
    assert wide.num_kv_stages == 2
    chosen = choice(plan, "num_kv_stages").reason
    assert ("4 do not fit" if stages < 4 else "loads have to run ahead") in chosen


@pytest.mark.parametrize(
    ("keys", "registers"),
    [
        ({"depth": 256, "mask": MASKS[2], "scheduler": "static"}, (40, 232)),
        ({"depth": 256, "mask": MASKS[2], "scheduler": "dynamic"}, (24, 240)),
        ({"depth": 256, "mask": "causal", "scheduler": "static"}, (24, 240)),
        ({"depth": 256, "cta_group": 2}, (40, 232)),
        ({"depth": 128, "mask": MASKS[2], "scheduler": "static"}, (32, 160)),
    ],
)
def test_a_loader_that_keeps_more_has_more_registers(
    plan_of: PlanOf, keys: dict[str, object], registers: tuple[int, int]
) -> None:
    plan = plan_of(**keys)
    assert (plan.producer_registers, plan.consumer_registers) == registers


def test_a_warpgroup_has_64_rows_of_a_tile(plan_of: PlanOf) -> None:
    assert plan_of(BM=128).num_consumer_warpgroups == 2
    assert plan_of(BM=64).num_consumer_warpgroups == 1


@pytest.mark.parametrize("keys", [{"BM": 128}, {}])
def test_who_decided_the_tile(plan_of: PlanOf, keys: dict[str, object]) -> None:
    plan = plan_of(**keys)
    for key in ("BM", "num_consumer_warpgroups"):
        row = choice(plan, key)
        assert (row.source == "config") == (key in keys)


def test_the_block_narrows_where_registers_are_fewer_than_it_was_tuned_for(
    plan_of: PlanOf,
) -> None:
    plan = plan_of(depth=192, BM=192)
    assert plan.BN == 112 == plan_of(depth=192).BN  # as far as can be counted
    assert plan.num_pv_chunks_in_flight == 1 < plan_of(depth=192).num_pv_chunks_in_flight
    few = plan_of(depth=192, registers={"producer": 24, "consumer": 168})
    assert few.BN == 112
    assert plan_of(depth=256, registers={"producer": 24, "consumer": 168}).BN == 64


def test_chunks_in_flight_give_way_to_a_block_that_was_asked_for(plan_of: PlanOf) -> None:
    assert plan_of(BN=96).num_pv_chunks_in_flight == 3
    few = {"producer": 32, "consumer": 160}
    assert plan_of(BN=176, registers=few).num_pv_chunks_in_flight == 1
    assert plan_of(BN=16).num_pv_chunks_in_flight == 1  # there is only one


def test_without_overlap_no_chunk_is_in_flight(plan_of: PlanOf) -> None:
    plan = plan_of(overlap=False)
    assert plan.num_pv_chunks_in_flight == 0
    assert choice(plan, "num_pv_chunks_in_flight").reason == (
        "without overlap all of P.V is waited for"
    )


def test_one_stage_where_two_do_not_fit(plan_of: PlanOf) -> None:
    plan = plan_of(depth=256, BN=96)
    assert plan.num_kv_stages == 1
    assert choice(plan, "num_kv_stages").reason == (
        "two do not fit shared memory (232448 bytes, queries take 65536, a stage 98304)"
    )


def test_two_stages_though_more_would_fit(plan_of: PlanOf) -> None:
    row = choice(plan_of(), "num_kv_stages")
    assert row == Choice(
        "num_kv_stages",
        2,
        "auto",
        "two were measured to be as fast as more; 3 would fit shared memory (232448 bytes, queries "
        "take 49152, a stage 49152)",
    )
    assert plan_of(num_kv_stages=3).num_kv_stages == 3


def test_a_pair_takes_tiles_in_turn_unless_told_otherwise(plan_of: PlanOf) -> None:
    assert plan_of(cta_group=2).scheduler == "static"
    assert plan_of(cta_group=2, scheduler="dynamic").scheduler == "dynamic"
    assert not plan_of(cta_group=2).mixed_tile_heights


def test_a_staged_output_is_not_overlapped(plan_of: PlanOf) -> None:
    plan = plan_of(epilogue="tma_store")
    assert not plan.overlap_epilogue
    assert choice(plan, "overlap_epilogue").reason == "the output is staged in the query slot"


def test_a_default_that_was_not_written_is_no_choice_of_the_config(plan_of: PlanOf) -> None:
    assert choice(plan_of(), "overlap").source == "default"
    assert choice(plan_of(overlap=True), "overlap").source == "config"
