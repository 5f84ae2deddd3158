"""Scales of blocks in a product on Hopper: what is refused, what helps, what the plan holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fa4gen.designs.build import build_plan
from fa4gen.designs.common.refusal import changed
from fa4gen.designs.gemm_sm90.candidates import candidates
from fa4gen.designs.gemm_sm90.config import HopperGemmConfig
from fa4gen.errors import ConfigError
from tests.designs.offers import offers, problems_of

ConfigOf = Callable[..., HopperGemmConfig]
WIDE = {"a": "1x128", "b": "128x128"}
FINE = {"a": "1x128", "b": "1x128"}
FP8 = {"dtype": "fp8_e4m3"}


@pytest.mark.parametrize(
    ("keys", "key", "words", "remedy"),
    [
        (
            {"scales": WIDE},
            "dtype",
            "scales: those of blocks are for fp8 operands, and dtype is bf16",
            "Set dtype: fp8_e4m3; or scales: null.",
        ),
        (
            {**FP8, "scales": WIDE, "BN": 176},
            "BN",
            "176 columns begin up to 112 after those of a scale of B, and reach into the blocks of "
            "three",
            "Set BN: 128; or scales: null.",
        ),
        (
            {**FP8, "scales": WIDE, "BM": 256, "BN": 64, "multiply_ahead": True},
            "multiply_ahead",
            "a warpgroup has 128 rows of the tile, and two sets of products are for 64",
            "Set multiply_ahead: auto.",
        ),
        (
            {**FP8, "scales": FINE, "BM": 64, "BN": 64, "BK": 256, "multiply_ahead": True},
            "multiply_ahead",
            "a stage brings 256 of k, and products are of 128",
            "Set multiply_ahead: auto.",
        ),
        (
            {**FP8, "scales": WIDE, "num_stages": 1, "multiply_ahead": True},
            "multiply_ahead",
            "num_stages is 1, and the next products are issued before the slot of the last ones",
            "Set multiply_ahead: auto.",
        ),
        (
            {"multiply_ahead": True},
            "multiply_ahead",
            "multiply_ahead: true, which is for products with scales",
            "Set multiply_ahead: auto.",
        ),
        (
            {**FP8, "scales": FINE, "BN": 256},
            "BN",
            "64 * 256 / 128 of the tile + 128 of the products of a block = 256, but has 232",
            "Set BN: auto.",
        ),
        (
            {**FP8, "scales": WIDE, "BK": 64},
            "BK",
            "a stage brings 128 or 256 bytes along k: 128 or 256",
            "Set BK: 128.",
        ),
    ],
)
def test_a_refusal_says_what_helps(
    hopper_gemm: ConfigOf, keys: dict[str, Any], key: str, words: str, remedy: str
) -> None:
    config = hopper_gemm(**keys)
    (problem,) = problems_of(config)
    assert problem.key == key
    assert words in problem.message
    assert problem.remedy == remedy
    for offer in offers(problem):
        assert problems_of(changed(config, offer)) == (), offer


@pytest.mark.parametrize(
    ("scales", "key"),
    [
        ({"a": "128x128", "b": "128x128"}, "a"),
        ({"a": "1x128"}, "b"),
        ({"a": "1x128", "b": "1x64"}, "b"),
        ({**WIDE, "dtype": "bf16"}, "dtype"),
        ("mxfp8", "scales"),
    ],
    ids=str,
)
def test_a_form_that_hopper_has_not_is_refused_at_its_place(
    hopper_gemm: ConfigOf, scales: Any, key: str
) -> None:
    with pytest.raises((ConfigError, ValueError), match=key):
        hopper_gemm(**FP8, scales=scales)


@pytest.mark.parametrize("columns", range(16, 257, 16))
def test_the_columns_of_a_tile_lie_in_two_blocks_of_b_at_most(
    hopper_gemm: ConfigOf, columns: int
) -> None:
    """Wherever a tile begins: what is refused reaches into three."""
    starts = range(0, 128 * columns, columns)
    most = max((first + columns - 1) // 128 - first // 128 + 1 for first in starts)
    config = hopper_gemm(**FP8, scales=WIDE, BN=columns, BM=64)
    refused = any("blocks of three" in problem.message for problem in problems_of(config))
    assert refused == (most > 2)


def test_blocks_of_columns_are_no_matter_for_scales_of_each(hopper_gemm: ConfigOf) -> None:
    assert problems_of(hopper_gemm(**FP8, scales=FINE, BM=64, BN=176)) == ()
    assert problems_of(hopper_gemm(**FP8, scales=WIDE, BM=176, swap_operands=True)) == ()


@pytest.mark.parametrize(
    ("scales", "type_", "across"),
    [
        (WIDE, "const float*", "n_blocks"),
        (FINE, "const float*", "n"),
        ({**FINE, "dtype": "ue8m0"}, "const unsigned char*", "n"),
    ],
)
def test_scales_are_pointers_with_a_stride_for_each_axis(
    hopper_gemm: ConfigOf, scales: dict[str, str], type_: str, across: str
) -> None:
    plan = build_plan(hopper_gemm(**FP8, scales=scales))
    types = {row.name: row.c_type for row in plan.parameters}
    assert types["scale_a"] == types["scale_b"] == type_
    strides = ["scale_a_batch_stride", "scale_a_m_stride", "scale_a_k_blocks_stride"]
    strides += ["scale_b_batch_stride", f"scale_b_{across}_stride", "scale_b_k_blocks_stride"]
    assert [name for name in types if name.startswith("scale_") and name.endswith("stride")] == (
        strides
    )
    assert {types[name] for name in strides} == {"int64"}
    assert all(not row.tensor.startswith("scale") for row in plan.tensor_maps)


def test_a_plan_without_scales_has_no_trace_of_them(hopper_gemm: ConfigOf) -> None:
    plan = build_plan(hopper_gemm(**FP8))
    assert (plan.scales, plan.products, plan.multiply_ahead) == ((), 0, False)
    assert not [row for row in plan.parameters if "scale" in row.name]


@pytest.mark.parametrize(
    ("keys", "products", "ahead"),
    [
        ({}, 128, True),
        ({"BN": 160}, 80, False),
        ({"multiply_ahead": False}, 64, False),
        ({"BM": 256, "BN": 64}, 32, False),
        ({"num_stages": 1}, 64, False),
        ({"BM": 192}, 64, True),
        ({"BM": 64, "BN": 64, "BK": 256}, 32, False),
        ({"BM": 48, "swap_operands": True}, 24, False),
        ({"BM": 48, "BK": 128, "swap_operands": True}, 48, True),
    ],
    ids=str,
)
def test_products_of_a_block_take_registers(
    hopper_gemm: ConfigOf, keys: dict[str, Any], products: int, ahead: bool
) -> None:
    """Two sets of them where the next ones are under way, and where both fit."""
    plan = build_plan(hopper_gemm(**FP8, scales=WIDE, **keys))
    assert (plan.products, plan.multiply_ahead) == (products, ahead)
    assert plan.accumulators + plan.products < plan.registers.consumer
    config = plan.config
    assert {"multiply_ahead": False} in list(candidates(config)) or not ahead


def test_scales_are_early_where_weights_stream(hopper_gemm: ConfigOf) -> None:
    def early(**keys: Any) -> bool:
        return build_plan(hopper_gemm(**FP8, BM=64, BN=64, **keys)).prefetches_scales

    assert early(scales=WIDE, evict_first="b")
    assert not early(scales=WIDE)
    assert not early(evict_first="b")


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (128, 128, 128), (129, 257, 4000)])
def test_extents_of_scales_are_rounded_up(hopper_gemm: ConfigOf, m: int, n: int, k: int) -> None:
    of_a, of_b = build_plan(hopper_gemm(**FP8, scales=WIDE)).scales
    blocks = -(-k // 128)
    assert of_a.extents(m, n, k) == {"m": m, "k_blocks": blocks}
    assert of_b.extents(m, n, k) == {"n_blocks": -(-n // 128), "k_blocks": blocks}
