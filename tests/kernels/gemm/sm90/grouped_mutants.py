"""Mutants of Hopper's products of groups, each with the case of verify that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one
from tests.kernels.source_mutation import Change

_SMALL: Final = {"kernel": "gemm", "arch": "sm_90a", "num_stages": 2, "BM": 64, "BN": 64,
                 "most_groups": 512}  # fmt: skip
_FP8: Final = {**_SMALL, "dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "offsets": {**_SMALL, "dtype": "bf16", "groups": "offsets"},
    "masked": {**_SMALL, "dtype": "bf16", "groups": "masked"},
    "matrix": {**_SMALL, "dtype": "bf16", "groups": "masked", "residual": "matrix"},
    "bias": {**_SMALL, "dtype": "bf16", "groups": "offsets", "residual": "row"},
    "scaled": {**_FP8, "groups": "offsets"},
    "scaled masked": {**_FP8, "groups": "masked"},
}
UNEVEN, MANY, ENDS = "groups/uneven", "groups/many", "groups/ends"
LIST: Final = {
    "the_first_row_of_a_group_is_that_of_the_next": one(
        "offsets", UNEVEN, r"row_offsets \+ min\(group, groups\)",
        "row_offsets + min(group + 1, groups)", ""),
    "an_offset_is_off_by_one": one(
        "offsets", UNEVEN, r"begin\[i\] = max\(0,", "begin[i] = max(1, 1 +"),
    "the_last_tile_of_a_group_is_left_out": one(
        "offsets", UNEVEN, r"\(count \+ kTileRows - 1\) / kTileRows", "count / kTileRows",
        "unwritten: "),
    "tiles_of_a_group_count_for_those_before": one(
        "offsets", UNEVEN, r"row_tiles \+ end - tiles\[i\]", "row_tiles + end", ""),
    "the_end_of_the_last_group_is_not_listed": one(
        "offsets", UNEVEN, r"if \(group <= groups\)", "if (group < groups)", ""),
    "groups_past_a_lane_begin_again": one(
        "offsets", MANY, r"row_tiles \+= __shfl_sync\(0xffffffffu, end, 31\);", "", ""),
    "the_sum_over_lanes_ends_early": one(
        "offsets", MANY, r"step < 32; step \*= 2", "step < 16; step *= 2", ""),
    "groups_past_the_first_loads_are_not_listed": one(
        "offsets", "groups/mostly_empty", r"first <= groups; first", "first == 0; first", ""),
    "the_counts_of_the_group_before_are_read": one(
        "masked", UNEVEN, r"row_counts \+ group\)", "row_counts + max(0, group - 1))", ""),
    "every_row_of_a_matrix_counts": one(
        "masked", UNEVEN, r"max\(0, min\(load_unchanging_int32\(row_counts \+ group\), m\)\)", "m",
        "guard: "),
    "a_row_more_counts": one(
        "masked", UNEVEN, r"rows\[i\] = count;", "rows[i] = count + (count > 0);", "guard: "),
    "counts_are_read_before_they_are_there": ReportedMutant(
        "offsets", UNEVEN,
        (Change(r"(  if \(threadIdx\.x == 0\) \{\s+initialize_barriers(?:.|\n)*?__syncthreads"
                r"\(\);\n)(  const uint32 list = [^\n]*\n  const int32 num_tiles = [^\n]*\n)",
                r"\2\1"),),
        ""),
}  # fmt: skip
TILES: Final = {
    "a_tile_is_given_to_the_group_before": one(
        "offsets", UNEVEN, r"row_tiles_before\(later\) <= row_tile",
        "row_tiles_before(later) < row_tile", ""),
    "the_search_skips_half_of_the_groups": one(
        "offsets", MANY, r"step > 0; step /= 2", "step > 1; step /= 2", ""),
    "a_warp_gives_a_tile_to_the_group_before": one(
        "scaled", UNEVEN, r"row_tiles_before\(group\) <= row_tile",
        "row_tiles_before(group) < row_tile", ""),
    "a_warp_looks_at_the_first_groups_alone": one(
        "scaled", MANY, r"\} while \(before == 0xffffffffu\);", "} while (false);", ""),
    "tail_rows_of_the_neighbour_are_written": one(
        "offsets", ENDS, r"int32\(next\[1\]\)\}", "int32(next[1]) + 1}", ""),
    "the_tail_is_not_clipped": one("offsets", UNEVEN, r"int32\(next\[1\]\)\}", "problem.m}", ""),
    "the_tail_loses_a_row": one(
        "offsets", UNEVEN, r"int32\(next\[1\]\)\}", "int32(next[1]) - 1}", "unwritten: "),
    "a_masked_group_ends_with_the_next": one(
        "masked", UNEVEN, r"int32\(own\[1\]\)\}", "int32(next[1])}", ""),
    "the_rows_of_the_last_band_are_as_many": one(
        "offsets", "groups/rows", r"min\(problem\.group_rows, row_tiles - first_row\)",
        "problem.group_rows", ""),
    "later_tiles_are_stored_where_the_first_is": one(
        "offsets", UNEVEN, r"if \(done\.panel == 0 && done\.index < problem\.num_tiles\)",
        "if (false)", ""),
}  # fmt: skip
OPERANDS: Final = {
    "the_weights_of_the_group_before_are_read": one(
        "offsets", UNEVEN, r"(load_b\([^{]*\{(?:.|\n)*?)tile\.batch",
        r"\1max(0, tile.batch - 1)"),
    "all_groups_have_the_weights_of_the_first": one(
        "offsets", UNEVEN, r"(load_b\([^{]*\{(?:.|\n)*?)tile\.batch", r"\g<1>0"),
    "rows_of_a_are_those_of_the_first_group": one(
        "masked", UNEVEN, r"(load_a\([^{]*\{(?:.|\n)*?)tile\.batch", r"\g<1>0"),
    "a_group_is_stored_as_the_first": one("masked", UNEVEN, r"stored\.batch", "0", ""),
    "a_group_has_the_c_of_the_first": one(
        "matrix", UNEVEN, r"(tma_load_clipped_unhinted\((?:.|\n)*?)tile\.batch", r"\g<1>0"),
    "a_group_has_the_bias_of_the_first": one(
        "bias", UNEVEN, r"(tma_load_2d\((?:.|\n)*?)tile\.batch", r"\g<1>0"),
    "the_scales_of_b_are_those_of_the_first_group": one(
        "scaled", UNEVEN, r"b_scales\.from\(tile\.batch", "b_scales.from(0"),
    "the_scales_of_a_are_those_of_the_first_group": one(
        "scaled masked", UNEVEN, r"a_scales\.from\(tile\.batch", "a_scales.from(0"),
    "the_scales_of_a_are_those_of_the_first_rows": one(
        "scaled", UNEVEN, r"const int32 line = tile\.row \+ row", "const int32 line = row"),
    "the_next_tile_has_the_scales_of_this_one": one(
        "scaled", UNEVEN, r"tile_by_warp\(problem, index \+ tile_step\)",
        "tile_by_warp(problem, index)"),
}  # fmt: skip
MUTANTS: Final[dict[str, ReportedMutant]] = {**LIST, **TILES, **OPERANDS}
