"""Mutants of Hopper's sums over groups along k, each with the case of verify that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one

SMALL: Final = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "groups": "k_offsets",
                "a_major": "m", "b_major": "n", "num_stages": 2, "BM": 64, "BN": 64}  # fmt: skip
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "plain": SMALL,
    "matrix": {**SMALL, "residual": "matrix", "out_dtype": "fp32"},
}
UNEVEN, ENDS, NAN = "groups/uneven", "groups/ends", "groups/nan_neighbours"
COPY: Final = r"kEndRow - span\.end \+ span\.begin \+ block \* kBK, 0, span\.end,"
MUTANTS: Final[dict[str, ReportedMutant]] = {
    "the_first_row_of_the_neighbour_is_added": one(
        "plain", ENDS, COPY, "kEndRow - span.end - 1 + span.begin + block * kBK, 0, span.end + 1,"),
    "the_first_row_of_a_neighbour_with_nan_is_added": one(
        "plain", NAN, COPY, "kEndRow - span.end - 1 + span.begin + block * kBK, 0, span.end + 1,"),
    "the_last_row_is_left_out": one(
        "plain", UNEVEN, COPY,
        "kEndRow - span.end + 1 + span.begin + block * kBK, 0, span.end - 1,"),
    "rows_begin_with_the_neighbours_last": one(
        "plain", UNEVEN, COPY, "kEndRow - span.end + span.begin - 1 + block * kBK, 0, span.end,"),
    "every_block_is_the_first": one(
        "plain", UNEVEN, COPY, "kEndRow - span.end + span.begin, 0, span.end,"),
    "the_last_block_is_left_out": one(
        "plain", UNEVEN, r"\(end - begin \+ kBK - 1\) / kBK", "(end - begin) / kBK"),
    "the_rows_of_the_group_before_are_summed": one(
        "plain", UNEVEN, r"problem\.row_offsets \+ group\)",
        "problem.row_offsets + max(0, group - 1))"),
    "consumers_count_the_blocks_of_the_next_tile": one(
        "plain", UNEVEN, r"tile_at\(problem, index\)\.batch\)\.num_blocks",
        "tile_at(problem, min(index + tile_step, problem.num_tiles - 1)).batch).num_blocks", ""),
    "the_sums_of_a_group_without_rows_are_those_before": one(
        "matrix", UNEVEN, r"if \(num_blocks == 0\)", "if (num_blocks < 0)", ""),
    "groups_share_the_c_of_the_first": one(
        "matrix", UNEVEN, r"(tma_load_3d\((?:.|\n)*?)tile\.batch", r"\g<1>0"),
    "a_group_is_stored_as_the_first": one(
        "plain", UNEVEN, r"(tma_store_3d\((?:.|\n)*?)tile\.batch", r"\g<1>0", ""),
    "all_tiles_have_the_first_columns_of_a": one(
        "plain", UNEVEN, r"a_map, tile\.row,", "a_map, 0,"),
}  # fmt: skip
