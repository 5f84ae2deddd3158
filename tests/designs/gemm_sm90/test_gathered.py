"""Gathered rows of a product on Hopper: what is refused, what helps, what the plan holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from fa4gen.errors import ConfigError
from tests.designs.offers import offers, problems_of

ConfigOf = Callable[..., HopperGemmConfig]
GATHERED = {"rows": "gathered"}
FINE = {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "1x128"}}


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {"a_major": "m"},
            "a_major",
            "a_major: m, but gathered rows are copied along a contiguous k",
            "Set a_major: k; or rows: contiguous.",
        ),
        (
            {"cta_group": 2, "share": "a"},
            "share",
            "share: a, with which CTAs share A by multicast, but gathered rows are copied without",
            "Set share: auto; or rows: contiguous.",
        ),
        (
            {"cta_group": 8},
            "cta_group",
            "cta_group: 8, with which CTAs share A by multicast",
            "Set cta_group: 2; or rows: contiguous.",
        ),
        (
            {"cta_group": 2, "swap_operands": True},
            "cta_group",
            "cta_group: 2, with which CTAs share A by multicast",
            "Set cta_group: 1; or rows: contiguous.",
        ),
        (
            {"BM": 192, "BN": 128},
            "BM",
            "3, whose outputs leave one warp of the producer, but two copy gathered rows",
            "Set BM: 128 and num_consumer_warpgroups: 2; or rows: contiguous.",
        ),
        (
            {"evict_first": "both"},
            "evict_first",
            "evict_first: both, but the lines of gathered rows have no policy for L2",
            "Set evict_first: b; or rows: contiguous.",
        ),
    ],
)
def test_what_does_not_go_with_gathered_rows(
    hopper_gemm: ConfigOf, keys: dict[str, Any], key: str, words: str, remedy: str
) -> None:
    config = hopper_gemm(**GATHERED, **keys)
    (problem,) = problems_of(config)
    assert (problem.key, problem.remedy) == (key, remedy)
    assert words in problem.message
    for offer in offers(problem):
        assert problems_of(changed(config, offer)) == (), offer


@pytest.mark.parametrize("warpgroups", [1, 2])
def test_every_lane_that_copies_arrives(hopper_gemm: ConfigOf, warpgroups: int) -> None:
    plan = build_plan(hopper_gemm(**GATHERED, BM=64 * warpgroups, BN=64))
    full = plan.barrier("input_full")
    assert (full.arrivals, full.transaction_bytes) == (1 + 64, plan.b_bytes)
    assert plan.role("gather").first_warp == 3
    contiguous = build_plan(hopper_gemm(BM=64 * warpgroups, BN=64)).barrier("input_full")
    assert (contiguous.arrivals, contiguous.transaction_bytes) == (1, plan.stage_bytes)


def test_a_has_an_address_in_place_of_a_tensor_map(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(**GATHERED, **FINE))
    assert [row.tensor for row in plan.tensor_maps] == ["b", "out"]
    names = [row.name for row in plan.parameters]
    assert names[:6] == [
        *("a", "a_row_chunks", "a_batch_bytes", "a_rows", "row_index", "row_index_batch_stride"),
    ]
    assert "scale_a_rows_stride" in names
    assert "a_map" not in names


def test_single_columns_with_scales_leave_no_registers_for_products_ahead(
    hopper_gemm: ConfigOf,
) -> None:
    assert not build_plan(hopper_gemm(**GATHERED, **FINE)).multiply_ahead
    assert build_plan(hopper_gemm(**FINE)).multiply_ahead


def test_slots_of_the_output_make_room_for_a_stage(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(**GATHERED))
    assert (plan.num_epi_stages, plan.num_stages) == (2, 4)
    assert (plan.producer_registers, plan.consumer_registers) == (56, 224)


def test_blackwell_has_no_such_key() -> None:
    from fa4gen.config.load import load_mapping

    with pytest.raises(ConfigError, match="rows"):
        load_mapping({"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16", **GATHERED}, "x")
