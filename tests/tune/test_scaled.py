"""Tiles of products with scales of blocks: what is tried, suits and is predicted."""

from __future__ import annotations

from typing import Any

import pytest

from fa4gen.bench.gemm_workload import GemmWorkload
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.tune.gemm_family import GEMM
from fa4gen.tune.model.chips import H200
from fa4gen.tune.model.gemm import GemmTile
from fa4gen.tune.tiles import HOPPER_GEMM

SCALED: dict[str, Any] = {
    "kernel": "gemm",
    "arch": "sm_90a",
    "dtype": "fp8_e4m3",
    "scales": {"a": "1x128", "b": "128x128"},
}


def _plan(**keys: Any) -> Any:
    return build_plan(load_mapping({**SCALED, **keys}, name="scaled").config)


@pytest.mark.parametrize(
    ("keys", "scales"),
    [
        ({}, "block"),
        ({"BN": 96}, "blocks"),
        ({"BN": 192}, "blocks"),
        ({"scales": {"a": "1x128", "b": "1x128"}, "BN": 64}, "lines"),
        ({"swap_operands": True, "BM": 16}, "lines"),
        ({"scales": None}, "none"),
    ],
)
def test_the_model_knows_the_scales_of_columns(keys: dict[str, Any], scales: str) -> None:
    assert GemmTile.of(_plan(**keys)).scales == scales


def test_what_a_warpgroup_adds_takes_time() -> None:
    problem = GemmWorkload(4096, 4096, 7168, 1)
    ahead, in_turn, two_blocks = (
        GEMM.predict(_plan(**keys), problem, H200).us
        for keys in ({"BN": 128}, {"BN": 128, "multiply_ahead": False}, {"BN": 96})
    )
    assert ahead < in_turn
    assert ahead < two_blocks


def test_few_rows_have_weights_that_leave_first_and_a_divided_k() -> None:
    few, many = GemmWorkload(64, 4096, 7168, 1), GemmWorkload(4096, 4096, 7168, 1)
    divided = _plan(BM=64, BN=64, split_k=2, evict_first="b")
    assert GEMM.suits(divided, few)
    assert not GEMM.suits(divided, many)
    assert not GEMM.suits(_plan(swap_operands=True, BM=64), few)
    assert GEMM.suits(_plan(), many)


def test_tiles_that_are_tried_can_be_planned() -> None:
    tried = list(HOPPER_GEMM.variants(SCALED))
    assert len(tried) == len({tuple(sorted(tile.items())) for tile in tried})
    assert any(tile.get("split_k") == 2 for tile in tried)
    assert not any(tile.get("swap_operands") for tile in tried)
