"""Mutants of products with gathered rows, each with the case of verify that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import one
from tests.kernels.gemm.sm90.scaled_mutants import WIDE

_SMALL: Final = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "rows": "gathered",
                 "num_stages": 2, "BM": 64, "BN": 64}  # fmt: skip
_SCALED: Final = {**_SMALL, "dtype": "fp8_e4m3", "scales": WIDE}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "plain": _SMALL,
    "high": {**_SMALL, "BM": 128},
    "pair": {**_SMALL, "BM": 128, "cta_group": 2},
    "grouped": {**_SMALL, "groups": "offsets"},
    "masked": {**_SMALL, "groups": "masked"},
    "swapped": {**_SMALL, "BM": 40, "swap_operands": True},
    "split": {**_SMALL, "split_k": 2},
    "scaled": _SCALED,
    "scaled swapped": {**_SCALED, "BM": 40, "BK": 128, "swap_operands": True},
    "scaled grouped": {**_SCALED, "groups": "offsets"},
}


PERMUTED: Final = "index/permutation"
APART: Final = "scales/blocks_apart"
FENCE: Final = r"\n *fence_proxy_async_shared\(\);[^\n]*(?:\n *//[^\n]*)*(?=\n *const uint32 stage)"
ARRIVE: Final = r"mbarrier_arrive_after_copies\(stage\.mbar\(\)\);"

INDEX: Final = {
    "the_index_is_a_row_off": one(
        "plain", PERMUTED, r"index_batch_stride \+ row\)", "index_batch_stride + max(row - 1, 0))"),
    "a_tile_has_the_index_of_the_tile_before": one(
        "plain", "tiles/many", r"gathered, index \+ tile_step", "gathered, index"),
    "the_first_tile_has_the_index_of_the_second": one(
        "plain", "tiles/many", r"gathered, first_tile", "gathered, first_tile + tile_step"),
    "the_index_is_read_past_its_end": one(
        "plain", PERMUTED, r"if \(row >= m\) return -1;", "", "out-of-bounds"),
    "the_last_row_has_no_index": one(
        "plain", PERMUTED, r"if \(row >= m\)", "if (row >= m - 1)"),
    "an_index_past_the_last_row_is_a_row": one(
        "plain", "index/absent",
        r"static_cast<uint32>\(found\) < static_cast<uint32>\(count\) \? found : -1", "found",
        "out-of-bounds"),
    "an_index_of_no_row_is_the_first": one(
        "plain", "tiles/many", r"\? found : -1", "? found : 0"),
    "every_batch_has_the_index_of_the_first": one(
        "plain", "tiles/many", r"batch \* index_batch_stride \+ ", ""),
    "every_batch_has_the_rows_of_the_first": one(
        "plain", "tiles/many", r"\+ tile\.batch \* gathered\.batch_bytes", ""),
    "the_second_cta_has_the_rows_of_the_first": one(
        "pair", PERMUTED, r"tile\.row \+ rank \* kBM \+ threadIdx", "tile.row + threadIdx"),
    "a_group_has_the_index_of_the_first_row_on": one(
        "grouped", "groups/uneven", r"tile\.row \+ threadIdx\.x % 8",
        "tile.row % kBM + threadIdx.x % 8"),
    "masked_groups_have_one_index": one(
        "masked", "groups/uneven", r"batch \* index_batch_stride \+ ", ""),
}  # fmt: skip
COPIES: Final = {
    "the_second_warp_copies_the_rows_of_the_first": one(
        "plain", PERMUTED, r"4 \* part \+ threadIdx", "threadIdx", ""),
    "later_steps_have_the_rows_of_the_first_eight": one(
        "high", PERMUTED, r"rows\[i / 8\]", "rows[0]"),
    "a_step_has_the_row_of_the_next": one(
        "plain", PERMUTED, r"i % 8, 8\)", "(i + 1) % 8, 8)"),
    "rows_are_a_chunk_further_apart": one(
        "plain", PERMUTED, r"row \* row_chunks", "row * (row_chunks + 1)", ""),
    "rows_are_not_swizzled": one(
        "plain", PERMUTED, r"\(threadIdx\.x % 8 \^ line\) \* 16", "threadIdx.x % 8 * 16"),
    "all_blocks_are_the_first": one(
        "plain", "depth/*", r"column = block \* kBK \+ panel", "column = 0 * kBK + panel"),
    "the_second_panel_is_the_first": one(
        "swapped", "depth/*", r"panel \* \(kBM \* kPanelBytes\)", "0", ""),
    "the_second_half_of_k_is_the_first": one(
        "split", "depth/*", r"block = blocks\.first; block < blocks\.end",
        "block = 0; block < blocks.end - blocks.first"),
    "k_is_not_padded": one(
        "plain", PERMUTED, r"left >= kPanelColumns", "true", ""),
    "the_last_chunk_is_copied_whole": one(
        "plain", "size/1x1x1", r"elements \* 2", "(elements > 0 ? kChunkElements : 0) * 2",
        "out-of-bounds"),
    "a_chunk_loses_its_last_element": one(
        "plain", "size/1x1x1", r"elements \* 2", "(elements - 1) * 2", ""),
}  # fmt: skip
ORDER: Final = {
    "the_fence_is_missing": one("plain", PERMUTED, FENCE, "", "proxy"),
    "the_fence_is_missing_with_scales": one("scaled", APART, FENCE, "", "proxy", times=1),
    "lanes_arrive_before_their_copies": one(
        "plain", PERMUTED, ARRIVE, "mbarrier_arrive(stage.mbar());", ""),
    "one_lane_arrives_for_its_warp": one(
        "plain", PERMUTED, ARRIVE,
        "if (threadIdx.x % 32 == 0) mbarrier_arrive_after_copies(stage.mbar());", ""),
}  # fmt: skip
SCALES: Final = {
    "scales_are_those_of_the_rows_of_the_output": one(
        "scaled", APART, r"const int32 found = gathered\.at\(tile\.batch, line, problem\.m\);",
        "const int32 found = line < problem.m ? line : -1;", ""),
    "swapped_scales_are_those_of_the_rows_of_the_output": one(
        "scaled swapped", APART,
        r"const int32 found = gathered\.at\(tile\.batch, ([^,]*), problem\.m\);",
        r"const int32 found = \1 < problem.m ? \1 : -1;", ""),
    "a_row_of_zeros_has_the_first_scale": one(
        "scaled", APART, r"found >= 0\) <<", "true) <<"),
    "a_swapped_row_of_zeros_has_the_first_scale": one(
        "scaled swapped", APART, r"found >= 0\) <<", "true) <<"),
    "a_scale_counts_for_the_row_below": one(
        "scaled", APART, r"exists >> \(i \* kRowScales \+ j\)", "exists >> (i * kRowScales)"),
    "scales_of_groups_are_those_of_the_rows_of_the_output": one(
        "scaled grouped", "groups/uneven",
        r"const int32 found = gathered\.at\(tile\.batch, line, problem\.m\);",
        "const int32 found = line < problem.m ? line : -1;", ""),
}  # fmt: skip
MUTANTS: Final = {**INDEX, **COPIES, **ORDER, **SCALES}
