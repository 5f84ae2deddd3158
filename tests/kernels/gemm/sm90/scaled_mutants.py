"""Mutants of scaled matrix products for Hopper, each with the case of verify that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one

WIDE: Final = {"a": "1x128", "b": "128x128"}
FINE: Final = {"a": "1x128", "b": "1x128"}
_SMALL: Final = {"kernel": "gemm", "arch": "sm_90a", "dtype": "fp8_e4m3", "num_stages": 2,
                 "BM": 64, "BN": 64}  # fmt: skip
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "ahead": {**_SMALL, "scales": WIDE},
    "in turn": {**_SMALL, "scales": WIDE, "multiply_ahead": False},
    "lines": {**_SMALL, "scales": FINE, "BM": 128},
    "two blocks": {**_SMALL, "scales": WIDE, "BN": 96},
    "swapped": {**_SMALL, "scales": WIDE, "BM": 40, "BK": 128, "swap_operands": True},
    "split": {**_SMALL, "scales": WIDE, "split_k": 2},
    "pair": {**_SMALL, "scales": WIDE, "cta_group": 2},
    "across": {**_SMALL, "scales": WIDE, "cta_group": 2, "share": "a"},
    "grid": {**_SMALL, "scales": FINE, "cta_group": 8},
    "deep": {**_SMALL, "scales": WIDE, "BK": 256},
    "high": {**_SMALL, "scales": WIDE, "BM": 256, "multiply_ahead": False},
    "bytes": {**_SMALL, "scales": {**WIDE, "dtype": "ue8m0"}},
}


APART: Final = "scales/blocks_apart"
NAN: Final = "scales/nan_scales"
ROUNDED: Final = r"__uint_as_float(__float_as_uint(\1) + 0x8000u & 0xffff0000u)"
"""To bf16."""
CUT: Final = r"__uint_as_float(__float_as_uint(\1) & 0xffffe000u)"
"""To the 10 bits of tf32."""

BLOCKS_OF_K: Final = {
    "a_scale_of_a_is_not_advanced": one(
        "ahead", APART, r"walk\.row_step = a_scales\.k_stride;", "walk.row_step = 0;"),
    "a_scale_of_b_is_not_advanced": one(
        "ahead", APART, r"walk\.column_step = b_scales\.k_stride;", "walk.column_step = 0;"),
    "steps_of_a_in_32_bits": one("in turn", "scales/far", r"int64 row_step;", "int row_step;", ""),
    "steps_of_b_in_32_bits": one(
        "in turn", "scales/far", r"int64 column_step;", "int column_step;", ""),
    "scales_of_b_are_stepped_as_those_of_a": one(
        "ahead", APART, r"column_step = b_scales", "column_step = a_scales", "out-of-bounds"),
    "products_get_the_scales_of_the_next_block": one(
        "ahead", APART, r"even, of_even, even_stage\);(\s+of_even)",
        r"even, of_odd, even_stage);\1"),
    "products_in_turn_get_the_scales_of_the_next_block": one(
        "in turn", APART, r"const LaneScales now = scales;", "const LaneScales& now = scales;"),
    "the_second_half_of_a_split_begins_with_the_first_scales": one(
        "split", APART, r"(, tile_at[^;]*),\s+blocks\.first\)", r"\1, 0)", times=2),
    "a_half_counts_stages_for_scales": one(
        "split", APART, r"(, tile_at[^;]*),\s+blocks\.first\)",
        r"\1, blocks.first + 1)",
        "out-of-bounds", times=2),
    "a_stage_of_256_has_one_scale": one(
        "deep", APART, r"part < kScaledParts - 1 \|\| block", "part == kScaledParts - 1 && block"),
    "the_second_half_of_a_stage_is_the_first": one(
        "deep", APART, r"part \* \(kScaledK / kMmaK\) \+ k", "k", times=2),
    "scales_past_the_last_block_are_loaded": one(
        "deep", "depth/776", r"if \(--left == 0\) row_step = column_step = 0;", "",
        "out-of-bounds"),
}  # fmt: skip
LINES: Final = {
    "a_scale_is_that_of_the_next_row": one(
        "ahead", APART, r"\+ 8 \* j;", "+ 8 * j + 1;"),
    "the_lower_rows_of_a_product_have_the_scales_of_the_upper": one(
        "ahead", APART, r"scales\.rows\[i\]\[kRowScales - 1\]", "scales.rows[i][0]"),
    "all_warps_have_the_scales_of_the_first": one(
        "ahead", APART, r"threadIdx\.x / 32 % 4 \* 16", "threadIdx.x / 32 % 1 * 16"),
    "the_second_warpgroup_has_the_scales_of_the_first": one(
        "lines", APART, r"tile\.row \+ row \+ i", "tile.row + i"),
    "the_second_64_rows_have_the_scales_of_the_first": one(
        "high", APART, r"row \+ i \* kMmaRows", "row"),
    "rows_past_the_end_are_looked_up": one(
        "ahead", "size/33x24x40", r"min\(line, problem\.m - 1\)", "line", ""),
    "the_last_row_has_the_scale_before": one(
        "ahead", "size/33x24x40", r"min\(line, problem\.m - 1\)",
        "min(line, max(0, problem.m - 2))"),
    "a_and_b_are_exchanged": one(
        "lines", APART,
        r"BlockScales& a_scales,(\s+const BlockScales&) b_scales, int32 first_tile",
        r"BlockScales& b_scales,\1 a_scales, int32 first_tile", ""),
    "the_shuffle_is_a_lane_off": one(
        "lines", APART, r"group % 4 \* 8 \+", "group % 4 * 8 + 1 +"),
    "both_columns_have_the_scale_of_the_first": one(
        "lines", APART, r"of_lane, lane \+ 1\)", "of_lane, lane)"),
    "later_columns_have_the_scales_of_the_first_32": one(
        "lines", APART, r"scales\.columns\[group / 4\]", "scales.columns[0]"),
    "columns_past_the_end_are_looked_up": one(
        "lines", "size/33x24x40", r"min\(line, problem\.n - 1\)", "line", ""),
    "swapped_rows_past_the_end_are_looked_up": one(
        "swapped", "size/33x24x40", r"min\(line, problem\.m - 1\)", "line", ""),
    "a_swapped_scale_is_that_of_the_next_row": one(
        "swapped", APART, r"32 \* j \+ threadIdx", "32 * j + 1 + threadIdx"),
    "the_first_cta_of_a_pair_gives_its_rows_to_both": one(
        "pair", APART, r"tile\.row \+ rank \* kBM \+ row \+ i", "tile.row + row + i"),
    "ctas_of_a_grid_have_the_columns_of_the_first": one(
        "grid", APART, r"tile\.column \+ rank % kClusterColumns \* kBN \+ 32",
        "tile.column + 32"),
    "ctas_of_a_grid_have_the_rows_of_the_first": one(
        "grid", APART, r"tile\.row \+ rank / kClusterColumns \* kBM \+ row \+ i",
        "tile.row + row + i"),
}  # fmt: skip
BLOCKS_OF_COLUMNS: Final = {
    "a_block_of_columns_is_rounded": one(
        "ahead", APART, r"(min\(tile\.column, problem\.n - 1\)) / 128",
        r"min((\1 + 64) / 128, (problem.n - 1) / 128)"),
    "a_block_of_columns_is_rounded_up": one(
        "ahead", APART, r"min\(tile\.column, problem\.n - 1\) / 128",
        "min((tile.column + 127) / 128, (problem.n - 1) / 128)"),
    "the_second_block_of_columns_has_the_scale_of_the_first": one(
        "two blocks", APART, r"boundary \? scales\.columns\[0\] : scales\.columns\[1\]",
        "boundary ? scales.columns[0] : scales.columns[0]"),
    "the_second_block_of_columns_begins_late": one(
        "two blocks", APART, r"8 \* group < boundary", "8 * group <= boundary"),
    "a_swapped_block_of_columns_is_rounded_up": one(
        "swapped", APART, r"min\(line, problem\.n - 1\) / 128",
        "min((line + 127) / 128, (problem.n - 1) / 128)"),
    "a_block_past_the_last_column_is_looked_up": one(
        "across", "tile/63x129x127", r"min\(tile\.column \+ rank \* kBN, problem\.n - 1\)",
        "(tile.column + rank * kBN + 128)", ""),
    "the_block_after_the_last_column_is_looked_up": one(
        "two blocks", "rings/6x8", r"min\(\(tile\.column\) / 128 \+ j, \(problem\.n - 1\) / 128\)",
        "(tile.column) / 128 + j", ""),
}  # fmt: skip
SUMS: Final = {
    "an_odd_last_block_is_left_out": one(
        "ahead", "size/1x1x1", r"(else \{\s+wgmma_wait<0>\(\);\s+)finish[^;]*;",
        r"\1release(even_stage);"),
    "the_last_of_an_even_number_of_blocks_is_left_out": one(
        "ahead", "depth/392", r"(wgmma_wait<0>\(\);\s+)finish\(sums\[0\], odd[^;]*;",
        r"\1release(odd_stage);"),
    "sums_are_not_zeroed": one("ahead", "size/1x1x1", r"sums\[0\]\[j\] = 0\.f;", "", ""),
    "sums_in_turn_are_not_zeroed": one("in turn", "size/1x1x1", r"sums\[i\]\[j\] = 0\.f;", "", ""),
    "products_of_a_block_are_added_to_those_before": one(
        "in turn", APART, r"k > 0\);", "true);", ""),
    "the_last_step_of_a_block_is_left_out": one(
        "ahead", "tile/64x64x128", r"k < kBK / kMmaK;", "k < kBK / kMmaK - 1;"),
    "products_are_added_while_they_are_under_way": one(
        "ahead", "size/1x1x1", r"wgmma_wait<1>\(\);", "", "", times=3),
    "a_slot_is_released_before_its_products_are_over": one(
        "in turn", "depth/392",
        r"wgmma_wait<0>\(\);\s+pin\(products\);\s+(if [^\n]* release\(stage\);)",
        r"\1\n          wgmma_wait<0>();\n          pin(products);", ""),
    "a_slot_of_products_under_way_is_released": one(
        "ahead", "depth/392", r"even, of_even, even_stage\);(\s+of_even)",
        r"even, of_even, odd_stage);\1", ""),
    "a_stage_is_released_after_its_first_half": one(
        "deep", "depth/776", r"part == kScaledParts - 1 && i == kRowBlocks - 1\) release",
        "part == 0 && i == kRowBlocks - 1) release", ""),
    "the_lower_rows_of_a_warpgroup_have_the_scales_of_the_next_block": one(
        "high", APART, r"const LaneScales now = scales;", "const LaneScales& now = scales;"),
    "a_slot_is_released_after_the_upper_rows": one(
        "high", "depth/392", r"i == kRowBlocks - 1\) release", "i == 0) release", ""),
    "a_product_of_scales_is_rounded": one(
        "lines", "size/33x24x40", r"(upper \* scale\.x)", ROUNDED),
    "a_product_of_scales_is_cut": one("lines", "depth/392", r"(upper \* scale\.x)", CUT),
    "the_products_of_a_block_are_rounded": one(
        "lines", "size/33x24x40", r"fmaf\((product\[0\])", "fmaf(" + ROUNDED),
    "sums_are_rounded": one(
        "lines", "depth/392", r"scale\.x, (sum\[0\])\)", f"scale.x, {ROUNDED})"),
}  # fmt: skip
TILES: Final = {
    "every_batch_has_the_scales_of_the_first": one(
        "ahead", "strides/apart", r"batch \* batch_stride \+ line", "line"),
    "batches_are_stepped_by_lines": one(
        "ahead", "strides/apart", r"batch \* batch_stride \+ line", "batch * line_stride + line"),
    "lines_are_stepped_by_blocks_of_k": one(
        "ahead", APART, r"line \* line_stride", "line * k_stride", "out-of-bounds"),
    "the_next_tile_has_the_scales_of_this_one": one(
        "ahead", "rings/6x8", r"tile_at\(problem, index \+ tile_step\)", "tile_at(problem, index)"),
    "later_tiles_go_on_with_the_scales_of_the_one_before": one(
        "ahead", "rings/6x8", r"(index \+ tile_step < problem\.num_tiles && num_blocks > 0)",
        r"\1 && index < 0"),
    "scales_of_a_tile_past_the_last_are_loaded": one(
        "ahead", "strides/apart", r"index \+ tile_step < problem\.num_tiles && ", "", ""),
    "scales_of_no_blocks_are_loaded": one(
        "ahead", "depth/0", r"first_tile < problem\.num_tiles && num_blocks > 0",
        "first_tile < problem.num_tiles", ""),
}  # fmt: skip
NUMBERS: Final = {
    "a_nan_scale_of_a_counts_as_zero": one(
        "ahead", NAN, r"= (load_unchanging_float\(rows\[i\]\[j\]\));", r"= fmaxf(\1, 0.f);"),
    "a_nan_scale_of_b_counts_as_zero": one(
        "ahead", NAN, r"= (load_unchanging_float\(columns\[j\]\));", r"= fmaxf(\1, 0.f);"),
    "the_lowest_byte_is_zero": one("bytes", APART, r"0x00400000u", "0u"),
    "a_nan_of_a_byte_is_an_infinity": one(
        "bytes", NAN, r"0x7fffffffu", "0x7f800000u"),
}  # fmt: skip
MUTANTS: Final[dict[str, ReportedMutant]] = {
    **BLOCKS_OF_K, **LINES, **BLOCKS_OF_COLUMNS, **SUMS, **TILES, **NUMBERS,
}  # fmt: skip
