"""Roles, parameters, tensor maps and summary."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fa4gen.designs.attention_sm100.model import FA4Config

PlanOf = Callable[..., FA4Config]


@pytest.mark.parametrize(
    ("keys", "roles"),
    [
        ({}, [("softmax 0", 0, 4), ("softmax 1", 4, 4), ("correction", 8, 4), ("mma", 12, 1),
              ("load", 13, 1), ("idle", 14, 2)]),
        ({"BM": 128}, [("softmax 0", 0, 4), ("correction", 4, 4), ("mma", 8, 1), ("load", 9, 1),
                       ("idle", 10, 2)]),
    ],
)  # fmt: skip
def test_roles_share_out_the_warps(plan_of: PlanOf, keys: dict[str, object], roles: object) -> None:
    plan = plan_of(**keys)
    assert [(role.name, role.first_warp, role.num_warps) for role in plan.roles] == roles


def test_parameters_follow_the_keys(plan_of: PlanOf) -> None:
    def names(**keys: object) -> list[str]:
        return [parameter.name for parameter in plan_of(**keys).parameters]

    common = ["batch", "query_heads", "heads_per_key_head", "query_rows", "key_rows"]
    strides = ["out_batch_stride", "out_row_stride", "out_head_stride"]
    schedule = ["tiles_per_head", "num_tiles", "heads_per_group"]
    maps = ["query_map", "key_map", "value_map", "out_map"]
    assert names() == [
        *maps, "out", "lse", "tile_counter", *common, *strides, "softmax_scale_log2", *schedule,
    ]  # fmt: skip
    assert names(dtype="fp8_e4m3", lse=False, scheduler="static", softcap=30.0) == [
        *maps, "out", "query_descale", "key_descale", "value_descale", *common, *strides,
        "softmax_scale", *schedule,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("keys", "boxes"),
    [
        ({}, {"query": (64, 128, 2), "key": (64, 128, 2), "value": (64, 128, 2),
              "out": (64, 128, 2)}),
        ({"num_qk_stages": 2}, {"query": (64, 128, 1), "key": (64, 128, 1)}),
        ({"cta_group": 2}, {"query": (64, 128, 1), "key": (64, 64, 1), "value": (64, 128, 1)}),
        ({"cta_group": 2, "depth": 64}, {"key": (64, 64, 1), "value": (32, 128, 1)}),
        ({"cta_group": 2, "depth": 96}, {"key": (32, 64, 1), "value": (16, 128, 3)}),
        ({"depth": 96}, {"query": (32, 128, 3), "key": (32, 128, 3), "out": (32, 128, 3)}),
        ({"dtype": "fp8_e4m3"}, {"query": (128, 128, 1), "value": (128, 128, 1),
                                 "out": (64, 128, 2)}),
        ({"depth": 192, "value_depth": 128}, {"query": (64, 128, 1), "value": (64, 96, 2),
                                              "out": (64, 128, 2)}),
    ],
    ids=str,
)  # fmt: skip
def test_boxes(plan_of: PlanOf, keys: dict[str, object], boxes: dict[str, object]) -> None:
    plan = plan_of(**keys)
    found = {tensor_map.tensor: tensor_map.box[:3] for tensor_map in plan.tensor_maps}
    assert found.items() >= boxes.items()


def test_the_summary_tells_what_is_special(plan_of: PlanOf) -> None:
    plan = plan_of(mask={"sliding_window": 100}, softcap=30.0, cta_group=2, value_depth=64)
    assert plan.summary == (
        "bf16, sums in float32; depth 128, of values 64; "
        "mask sliding window, 99 keys left and 0 right",
        "two query tiles of 128 rows x 128 keys; rings of 5 key and value slots",
        "static scheduler; 12.5% of exp2 on the FMA pipe",
        "logits capped at 30.0",
        "a pair of CTAs multiplies together, each with half of keys and values",
    )
    assert plan_of(dtype="fp8_e4m3", BM=128).summary[:2] == (
        "fp8_e4m3 to bf16, sums in float32; depth 128; mask none",
        "one query tile, two score buffers of 128 rows x 128 keys; a ring of 11 slots for keys and "
        "values",
    )
    assert plan_of().summary[1].endswith("a ring of 5 slots for keys and values")


def test_the_launch_in_words(plan_of: PlanOf) -> None:
    assert plan_of().launch.grid == (
        "as many CTAs as multiprocessors, or tiles where there are fewer"
    )
    pair = plan_of(cta_group=2).launch
    assert (pair.cluster, pair.threads) == (2, 512)
    assert pair.grid == "two CTAs a pair of tiles, at most as many as multiprocessors"
