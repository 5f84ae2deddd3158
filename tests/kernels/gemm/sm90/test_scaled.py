"""Scaled matrix products for Hopper: variants are clean in verify's cases, mutants are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.kernels.gemm.reported import DrawnTests, MutantTests, VariantTests
from tests.kernels.gemm.sm90.scaled_mutants import CONFIGS, FINE, MUTANTS, WIDE

if TYPE_CHECKING:
    from random import Random

Keys = dict[str, Any]
BYTES = {**WIDE, "dtype": "ue8m0"}
VARIANTS: dict[str, Keys] = {
    "BN 112, bytes, activation": {"scales": BYTES, "BN": 112, "activation": "silu(x)"},
    "BN 160, in turn": {"scales": WIDE, "BN": 160, "ping_pong": True},
    "ping_pong": {"scales": FINE, "BN": 64, "ping_pong": True, "out_dtype": "fp32"},
    "swapped, 16 rows": {"scales": WIDE, "BM": 16, "swap_operands": True, "residual": "matrix"},
    "swapped, 256 of k, split": {"scales": FINE, "swap_operands": True, "BK": 256, "split_k": 2},
    "swapped, a pair": {"scales": BYTES, "BM": 48, "swap_operands": True, "cta_group": 2},
    "split, 256 of k": {"scales": BYTES, "BN": 96, "BK": 256, "split_k": 2},
    "a grid of blocks": {"scales": WIDE, "BN": 96, "cta_group": 8, "residual": "row"},
    "192 rows": {"scales": FINE, "BM": 192, "BN": 48, "residual": "column"},
    "one slot": {"scales": FINE, "num_stages": 1, "cta_group": 2, "BN": 64},
    "fp16": {"scales": WIDE, "out_dtype": "fp16", "residual": "matrix", "cta_group": 2},
    "256 rows": {"scales": WIDE, "BM": 256, "cta_group": 2, "residual": "matrix"},
    "256 rows, lines": {"scales": FINE, "BM": 256, "BN": 64, "output_in_ring": True},
    "swapped, 256 columns": {"scales": BYTES, "BN": 256, "BK": 128, "swap_operands": True},
    "weights that stream": {"scales": BYTES, "evict_first": "b", "BN": 32, "cta_group": 2},
    "weights that stream, lines": {"scales": FINE, "evict_first": "both", "split_k": 2},
    "the output in the ring": {"scales": FINE, "output_in_ring": True, "short_ends": True},
}
ALWAYS = (
    "a_scale_of_a_is_not_advanced",
    "products_get_the_scales_of_the_next_block",
    "the_second_half_of_a_split_begins_with_the_first_scales",
    "a_stage_of_256_has_one_scale",
    "scales_past_the_last_block_are_loaded",
    "a_scale_is_that_of_the_next_row",
    "the_lower_rows_of_a_product_have_the_scales_of_the_upper",
    "a_and_b_are_exchanged",
    "the_shuffle_is_a_lane_off",
    "rows_past_the_end_are_looked_up",
    "the_first_cta_of_a_pair_gives_its_rows_to_both",
    "a_block_of_columns_is_rounded",
    "the_second_block_of_columns_begins_late",
    "the_last_of_an_even_number_of_blocks_is_left_out",
    "the_lower_rows_of_a_warpgroup_have_the_scales_of_the_next_block",
    "a_slot_is_released_before_its_products_are_over",
    "a_product_of_scales_is_cut",
    "every_batch_has_the_scales_of_the_first",
    "the_next_tile_has_the_scales_of_this_one",
    "a_nan_scale_of_a_counts_as_zero",
    "the_lowest_byte_is_zero",
)
"""Made in every run; all of them with --many-seeds."""


COMMON: Keys = {"arch": "sm_90a", "dtype": "fp8_e4m3", "BM": 64}


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS
    cases = ("scales/*", "batch/shared", "depth/*")


def any_keys(random: Random) -> Keys:
    def some(*values: Any) -> Any:
        return random.choice(values)

    return {
        "scales": {**some(WIDE, FINE), "dtype": some("fp32", "fp32", "ue8m0")},
        "BM": some(16, 40, 64, 128, 192, 256), "BN": some(64, 128, 16 * random.randint(1, 12)),
        "BK": some("auto", 128, 256), "swap_operands": some(False, False, True),
        "split_k": some(1, 1, 2), "cta_group": some(1, 1, 2, 4, 8), "ping_pong": some(False, True),
        "share": some("auto", "auto", "a", "both"), "multiply_ahead": some("auto", "auto", False),
        "residual": some("none", "none", "matrix", "row", "column"), "num_stages": some(1, 2, 3),
        "out_dtype": some("bf16", "fp16", "fp32"), "short_ends": some(False, True),
        "num_consumer_warpgroups": some("auto", "auto", 1, 2, 3),
    }  # fmt: skip


class TestDrawn(DrawnTests):
    common = COMMON
    always = ("scales/blocks_apart",)

    def keys(self, random: Random) -> Keys:
        return any_keys(random)


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = ALWAYS
