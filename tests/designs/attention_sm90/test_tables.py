from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4gen.designs.attention_sm90.model import HopperAttentionPlan
from fa4gen.designs.common.attention_model import AttentionPlan

PlanOf = Callable[..., AttentionPlan]


def test_roles_share_out_the_warps_and_rows(plan_of: PlanOf) -> None:
    load, first, second = plan_of(BM=128).roles
    assert (load.name, load.first_warp, load.num_threads) == ("load", 0, 128)
    assert (first.name, first.first_warp) == ("consume 0", 4)
    assert first.work == "Q.K, softmax, P.V and output of rows 0 to 63"
    assert second.work.endswith("rows 64 to 127")


def test_parameters_follow_the_keys(plan_of: PlanOf) -> None:
    def names(**keys: object) -> list[str]:
        return [parameter.name for parameter in plan_of(**keys).parameters]

    common = ["batch", "query_heads", "heads_per_key_head", "query_rows", "key_rows"]
    strides = ["out_batch_stride", "out_row_stride", "out_head_stride"]
    schedule = ["num_short_tiles", "tiles_per_head", "num_tiles", "heads_per_group"]
    maps = ["query_map", "key_map", "value_map"]
    assert names() == [
        *maps, "out", "lse", "tile_counter", *common, *strides, "softmax_scale_log2", *schedule,
    ]  # fmt: skip
    assert names(epilogue="tma_store", lse=False, scheduler="static", softcap=30.0) == [
        *maps, "out_map", *common, "softmax_scale", *schedule,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "boxes"),
    [
        ({}, {"query": (64, 64, 2, 1, 1), "key": (64, 96, 2, 1, 1)}),
        ({"cta_group": 2}, {"query": (64, 64, 2, 1, 1), "key": (64, 48, 1, 1, 1)}),
        ({"depth": 96}, {"query": (32, 64, 3, 1, 1), "key": (32, 128, 3, 1, 1)}),
        ({"epilogue": "tma_store"}, {"out": (64, 64, 2, 1, 1)}),
    ],
)
def test_boxes(plan_of: PlanOf, keys: dict[str, object], boxes: dict[str, object]) -> None:
    found = {tensor_map.tensor: tensor_map.box for tensor_map in plan_of(**keys).tensor_maps}
    assert found.items() >= boxes.items()
    assert found["value"] == found["key"]


def test_named_barriers_of_both_features_do_not_meet(plan_of: PlanOf) -> None:
    assert plan_of().named_barriers == ()
    assert plan_of(epilogue="tma_store").named_barriers == (("epilogue_barrier", 1),)
    assert plan_of(epilogue="tma_store", ping_pong=True).named_barriers == (
        ("turn_barrier", 1),
        ("epilogue_barrier", 4),
    )


def test_the_summary_counts_in_words(plan_of: PlanOf) -> None:
    assert plan_of(BM=64, num_kv_stages=1).summary[1] == (
        "tiles of 64 query rows x 96 keys, 1 consumer warpgroup, 1 stage"
    )


def test_the_summary_tells_what_is_special(plan_of: PlanOf) -> None:
    plan = plan_of(mask={"sliding_window": 100}, softcap=30.0, cta_group=2, epilogue="tma_store")
    assert plan.summary == (
        "bf16, sums in float32; depth 128; mask sliding window, 99 keys left and 0 right",
        "tiles of 192 query rows x 64 keys, 3 consumer warpgroups, 4 stages",
        "static scheduler, output by TMA store",
        "logits capped at 30.0",
        "a pair of CTAs shares keys and values by multicast",
    )


@pytest.mark.parametrize(
    ("keys", "early"),
    [
        ({"mask": "causal"}, True),
        ({"mask": "causal", "cta_group": 2, "scheduler": "dynamic"}, False),  # one counter for both
        ({"mask": "causal", "cta_group": 2, "scheduler": "static"}, True),
        ({"mask": "causal", "depth": 192, "BN": 112}, False),
        ({"mask": "causal", "depth": 192, "BN": 96}, True),
        ({"mask": "none", "depth": 192}, True),
        ({"mask": "causal", "depth": 256}, True),
    ],
)
def test_tiles_are_handed_out_early_where_that_is_faster(
    plan_of: PlanOf, keys: dict[str, object], early: bool
) -> None:
    plan = plan_of(**keys)
    assert isinstance(plan, HopperAttentionPlan)
    assert plan.hands_out_early == early
