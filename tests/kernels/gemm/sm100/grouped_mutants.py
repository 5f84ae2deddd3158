"""Mutants of Blackwell's products of groups, each with the case of verify that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one
from tests.kernels.source_mutation import Change

_SMALL: Final = {"kernel": "gemm", "arch": "sm_100a", "num_stages": 2, "BN": 128, "cta_group": 1,
                 "most_groups": 512}  # fmt: skip
_BF16: Final = {**_SMALL, "dtype": "bf16"}
_FP8: Final = {**_SMALL, "dtype": "fp8_e4m3", "scales": "mxfp8"}
_ATOMS: Final = {"output_scales": "mxfp8", "output_scale_order": "arranged"}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "offsets": {**_BF16, "groups": "offsets"},
    "pair": {**_BF16, "groups": "offsets", "cta_group": 2},
    "matrix": {**_BF16, "groups": "masked", "residual": "matrix"},
    "offset matrix": {**_BF16, "groups": "offsets", "residual": "matrix"},
    "bias": {**_BF16, "groups": "offsets", "residual": "row"},
    "atoms": {**_FP8, "groups": "offsets"},
    "atoms of a pair": {**_FP8, "groups": "offsets", "cta_group": 2},
    "masked atoms": {**_FP8, "groups": "masked"},
    "rows": {**_FP8, "groups": "masked", "scale_order": "row_major"},
    "output": {**_BF16, "groups": "offsets", "output_scales": "1x128"},
    "output atoms": {**_BF16, **_ATOMS, "groups": "offsets", "cta_group": 2},
    "masked output atoms": {**_BF16, **_ATOMS, "groups": "masked", "cta_group": 2},
}
UNEVEN, MANY, ENDS = "groups/uneven", "groups/many", "groups/ends"
TILES: Final = {
    "counts_are_read_before_they_are_there": ReportedMutant(
        "offsets", UNEVEN,
        (Change(r"(  __syncthreads\(\);\n  tcgen05_fence_after\(\);\n  const uint32 tensor_memory"
                r"[^\n]*\n)(  const uint32 list = [^\n]*\n  const int32 num_tiles = [^\n]*\n)",
                r"\2\1"),),
        ""),
    "a_tile_is_given_to_the_group_before": one(
        "offsets", UNEVEN, r"row_tiles_before\(later\) <= row_tile",
        "row_tiles_before(later) < row_tile", ""),
    "a_warp_gives_a_tile_to_the_group_before": one(
        "offsets", UNEVEN, r"row_tiles_before\(group\) <= row_tile",
        "row_tiles_before(group) < row_tile", ""),
    "a_warp_looks_at_the_first_groups_alone": one(
        "offsets", MANY, r"\} while \(before == 0xffffffffu\);", "} while (false);", ""),
    "tail_rows_of_the_neighbour_are_written": one(
        "offsets", ENDS, r"int32\(next\[1\]\)\}", "int32(next[1]) + 1}", ""),
    "the_tail_is_not_clipped": one(
        "pair", UNEVEN, r"kEndRow - tile\.end \+ row, 0, tile\.end\)",
        "kEndRow - tile.end - 7 + row, 0, tile.end + 7)", ""),
    "the_tail_loses_a_row": one(
        "pair", UNEVEN, r"int32\(next\[1\]\)\}", "int32(next[1]) - 1}", "unwritten: "),
    "the_second_cta_has_the_rows_of_the_first": one(
        "pair", UNEVEN, r"tile\.row \+ rank \* kBM, tile", "tile.row, tile", ""),
    "a_pair_has_the_tiles_of_a_cta": one(
        "pair", UNEVEN, r"kTileRows = kCtaGroup \* kBM", "kTileRows = kBM", ""),
}  # fmt: skip
OPERANDS: Final = {
    "the_weights_of_the_group_before_are_read": one(
        "offsets", UNEVEN, r"(load_b\(base (?:.|\n)*?)tile\.batch", r"\1max(0, tile.batch - 1)"),
    "all_groups_have_the_weights_of_the_first": one(
        "pair", UNEVEN, r"(load_b\(base (?:.|\n)*?)tile\.batch", r"\g<1>0"),
    "rows_of_a_are_those_of_the_first_group": one(
        "matrix", UNEVEN, r"(load_a\(base (?:.|\n)*?)tile\.batch", r"\g<1>0"),
    "a_group_is_stored_as_the_first": one(
        "matrix", UNEVEN, r"(tma_store_clipped\(out_map(?:.|\n)*?)tile\.batch", r"\g<1>0", ""),
    "a_group_has_the_c_of_the_first": one(
        "matrix", UNEVEN, r"(tma_load_clipped\(to(?:.|\n)*?)tile\.batch", r"\g<1>0"),
    "rows_of_c_are_the_ones_before": one(
        "offset matrix", UNEVEN, r"kEndRow - tile\.end \+ row(, 0, tile\.end,\s+slot)",
        r"kEndRow - tile.end + row - 1\1"),
    "a_group_has_the_bias_of_the_first": one(
        "bias", UNEVEN, r"(tma_load_2d\(to(?:.|\n)*?)tile\.batch", r"\g<1>0"),
}  # fmt: skip
SCALES: Final = {
    "all_groups_begin_at_the_first_atom": one(
        "atoms", UNEVEN, r"int32\(own\[0\]\) \+ row_tile\}", "row_tile}"),
    "later_tiles_have_the_atom_of_the_first": one(
        "atoms", UNEVEN, r"int32\(own\[0\]\) \+ row_tile\}", "int32(own[0])}"),
    "atoms_are_counted_as_tiles_of_a_pair": one(
        "atoms of a pair", UNEVEN, r"\(count \+ 127\) / 128", "(count + 255) / 256"),
    "the_second_cta_has_the_atom_of_the_first": one(
        "atoms of a pair", UNEVEN, r"tile\.atom \+ rank,", "tile.atom,"),
    "atoms_past_a_lane_begin_again": one(
        "atoms of a pair", MANY, r"atoms \+= __shfl_sync\(0xffffffffu, end_atom, 31\);", ""),
    "a_tile_of_a_pair_has_one_atom": one(
        "atoms of a pair", UNEVEN, r"row_tile \* \(kTileRows / 128\)", "row_tile"),
    "the_scales_of_a_are_those_of_the_first_group": one(
        "masked atoms", UNEVEN, r"(a_map, block \* kKAtoms,\s+row_atom,\s+)batch", r"\g<1>0"),
    "the_scales_of_b_are_those_of_the_first_group": one(
        "masked atoms", UNEVEN, r"(b_map, block \* kKAtoms,\s+column / kAtomRows,\s+)batch",
        r"\g<1>0"),
    "rows_of_scales_are_those_of_the_first_group": one(
        "rows", UNEVEN, r"run\.load\(scales, at_a_time, tile\.batch",
        "run.load(scales, at_a_time, 0"),
    "scales_of_the_neighbour_are_written": one(
        "output", UNEVEN, r"row < tile\.end && ", "", ""),
    "output_atoms_begin_with_the_rows": one(
        "output atoms", UNEVEN, r"tile\.atom \* 128 \+ row - tile\.row", "row", ""),
    "padding_of_a_group_is_no_zero": one(
        "output atoms", UNEVEN, r"if \(row < tile\.end && column \+ first", "if (column + first"),
    "an_atom_of_no_group_is_written": one(
        "output atoms", UNEVEN, r"row - place\.row < tile\.end && ", "", ""),
    "a_masked_atom_past_the_rows_is_written": one(
        "masked output atoms", UNEVEN, r"row / 128 \* 128 < tile\.end && ", "", ""),
}  # fmt: skip
MUTANTS: Final[dict[str, ReportedMutant]] = {**TILES, **OPERANDS, **SCALES}
