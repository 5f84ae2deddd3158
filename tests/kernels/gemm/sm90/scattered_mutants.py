"""Mutants of Hopper's products with scattered rows, each with the case that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one

SMALL: Final = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "groups": "offsets",
                "out_rows": "scattered", "num_stages": 2, "BM": 64, "BN": 64}  # fmt: skip
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "straight": SMALL,
    "one slot": {**SMALL, "num_epi_stages": 1, "BN": 128},
    "swapped": {**SMALL, "swap_operands": True, "BM": 32, "BN": 128, "num_consumer_warpgroups": 1},
}
UNEVEN, ENDS = "groups/uneven", "groups/ends"
MUTANTS: Final[dict[str, ReportedMutant]] = {
    "the_index_is_out_of_step": one(
        "straight", UNEVEN, r"load_unchanging_int32\(index \+ row\)",
        "load_unchanging_int32(index + max(0, row - 1))", ""),
    "the_rows_of_the_next_group_are_stored": one(
        "straight", ENDS, r"if \(row >= end\) return -1;", "if (row > end) return -1;", ""),
    "the_last_row_of_a_group_is_not_stored": one(
        "straight", UNEVEN, r"if \(row >= end\) return -1;", "if (row + 1 >= end) return -1;",
        "unwritten: "),
    "an_index_of_no_row_is_the_first": one(
        "straight", UNEVEN, r"static_cast<uint32>\(count\) \? found : -1;",
        "static_cast<uint32>(count) ? found : 0;", ""),
    "an_index_past_the_output_is_stored": one(
        "straight", UNEVEN, r"static_cast<uint32>\(found\) < static_cast<uint32>\(count\)",
        "found >= 0", ""),
    "weights_are_those_of_the_row_before": one(
        "straight", UNEVEN, r"load_unchanging_float\(weights \+ row\)",
        "load_unchanging_float(weights + max(0, row - 1))"),
    "both_rows_of_a_lane_have_one_weight": one(
        "straight", UNEVEN, r"lane / 4 \+ 8 \* r", "lane / 4"),
    "columns_past_the_end_are_stored": one(
        "straight", UNEVEN, r"if \(to >= 0 && column < problem\.n\)", "if (to >= 0)", ""),
    "chunks_are_not_where_the_swizzle_puts_them": one(
        "straight", UNEVEN, r"\(chunk \^ \(line % 8\)\) \* 16\);", "chunk * 16);"),
    "a_slot_is_handed_back_before_all_lanes_have_read": one(
        "one slot", UNEVEN, r"__syncwarp\(\);  // every lane has read the slot[^\n]*\n", "", ""),
    "later_tiles_end_where_the_first_does": one(
        "straight", UNEVEN, r"if \(done\.panel == 0 && done\.index < problem\.num_tiles\)",
        "if (false)", ""),
    "all_panels_go_to_the_first_columns": one(
        "swapped", UNEVEN, r"done\.column\(tile\)", "tile.column", ""),
    "weights_of_neighbouring_rows_are_exchanged": one(
        "swapped", UNEVEN, r"\+ r / 2 \* 8 \+ r % 2", "+ r / 2 * 8 + (r ^ 1) % 2"),
    "weights_of_the_lower_rows_are_those_above": one(
        "swapped", UNEVEN, r"\+ r / 2 \* 8 \+ r % 2", "+ r % 2"),
}  # fmt: skip
