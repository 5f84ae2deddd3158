"""Mutants of Hopper's products with a quantised output, each with the case that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one
from tests.kernels.source_mutation import Change

_SMALL: Final = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "num_stages": 2, "BM": 64,
                 "BN": 128, "output_scales": "1x128"}  # fmt: skip
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "plain": _SMALL,
    "wide": {**_SMALL, "BN": 256},
    "two": {**_SMALL, "BM": 128},
    "high": {**_SMALL, "BM": 128, "num_consumer_warpgroups": 1},
    "pair": {**_SMALL, "cta_group": 2},
    "across": {**_SMALL, "cta_group": 2, "share": "a"},
    "turns": {**_SMALL, "ping_pong": True},
    "matrix": {**_SMALL, "residual": "matrix"},
    "column": {**_SMALL, "residual": "column"},
    "silu": {**_SMALL, "activation": "silu(x)"},
    "exp": {**_SMALL, "activation": "exp(x)"},
    "bytes": {**_SMALL, "output_scale_dtype": "ue8m0"},
    "halves": {
        **_SMALL,
        "dtype": "fp8_e4m3",
        "cta_group": 2,
        "BN": 256,
        "activation": "silu(gate) * up",
        "scales": {"a": "1x128", "b": "128x128"},
    },
}
PAIR: Final = r"pack_e4m3_pair\(value\[(\d)\] \* (\w+), value\[(\d)\] \* (\w+)\)"
CUT: Final = r"__uint_as_float(__float_as_uint(value[\1] * \2) & 0xfff00000u)"
"""To the three bits of e4m3."""


AMAX: Final = {
    "amax_of_half_of_the_columns": one(
        "plain", "tile/64x128x64", r"j < kOutPanelColumns / 2; j \+= 4",
        "j < kOutPanelColumns / 4; j += 4"),
    "amax_of_two_lanes_of_the_quad": one(
        "plain", "tile/64x128x64", r"amax = fmaxf\(amax, shuffle_xor\(amax, 2\)\);", ""),
    "amax_of_every_other_column": one(
        "plain", "tile/64x128x64", r"fmaxf\(fabsf\(values\[j\]\), fabsf\(values\[j \+ 1\]\)\)",
        "fabsf(values[j])"),
    "amax_of_numbers_with_their_sign": one(
        "plain", "tile/64x128x64", r"fabsf\(values\[j \+ 2\]\), fabsf\(values\[j \+ 3\]\)",
        "values[j + 2], values[j + 3]"),
    "amax_before_the_activation": ReportedMutant(
        "silu", "tile/64x128x64",
        (Change(r"return activation\((.*)\);", r"return \1;"),
         Change(PAIR, r"pack_e4m3_pair(activation(value[\1]) * \2, activation(value[\3]) * \4)",
                4))),
    "amax_of_both_rows": one(
        "plain", "tile/64x128x64", r"lower = fmaxf\(lower,", "upper = lower = fmaxf(upper,"),
    "zeros_have_no_scale": one("plain", "depth/0", r"(fminf\(amax, kLargestFloat\)), kLeastAmax",
                                r"\1, 0.f"),
    "an_infinity_is_the_amax": one(
        "plain", "quantised/infinite", r"fminf\(amax, kLargestFloat\)", "amax"),
    "nan_is_the_amax": one(
        "plain", "quantised/nan",
        r"upper = fmaxf\(upper, fmaxf\((fabsf\(values\[j\]\)), (fabsf\(values\[j \+ 1\]\))\)\);",
        r"upper = \1 <= upper ? fmaxf(upper, \2) : \1;"),
    "columns_past_the_end_count": one(
        "exp", "tile/63x129x63", r"if \(problem\.n - column < kOutPanelColumns\)", "if (false)"),
    "columns_past_the_end_of_c_count": one(
        "column", "tile/63x129x63", r"if \(problem\.n - column < kOutPanelColumns\)", "if (false)"),
    "the_last_column_does_not_count": one(
        "exp", "tile/63x129x63", r"(j % 2) >= problem\.n\)", r"\1 >= problem.n - 1)"),
}  # fmt: skip
SCALES: Final = {
    "the_scale_of_the_block_before": one(
        "wide", "tile/64x256x64", r"const int32 column = first_column \+ panel \* kOutPanelColumns",
        "const int32 column = first_column", "unwritten: "),
    "blocks_of_a_row_exchange_scales": one(
        "wide", "tile/64x256x64", r"column / 128 \*", "(column / 128 ^ 1) *"),
    "the_scale_of_the_next_row": one(
        "plain", "tile/64x128x64", r"8 \* has_lower;", "8 * has_lower + 1;", ""),
    "scales_of_both_rows_are_exchanged": one(
        "plain", "tile/64x128x64", r"8 \* has_lower;", "8 * !has_lower;"),
    "the_second_64_rows_have_the_place_of_the_first": one(
        "high", "tile/128x128x64", r"first_row \+ i \* kMmaRows", "first_row", "unwritten: "),
    "the_second_warpgroup_has_the_place_of_the_first": one(
        "two", "tile/128x128x64", r"tile\.row \+ row \+ line", "tile.row + line", ""),
    "the_second_cta_has_the_rows_of_the_first": one(
        "pair", "tile/128x128x64", r"tile\.row \+ rank \* kBM \+ row \+ line",
        "tile.row + row + line", ""),
    "the_second_cta_has_the_columns_of_the_first": one(
        "across", "tile/64x256x64", r"first_column = tile\.column \+ rank \* kBN",
        "first_column = tile.column", ""),
    "scales_of_rows_past_the_end": one(
        "plain", "tile/63x129x63", r" && scaled_row < problem\.m", "", ""),
    "scales_of_blocks_past_the_end": one(
        "across", "tile/63x257x63", r" && column < problem\.n", "", ""),
    "every_batch_has_the_place_of_the_first": one(
        "plain", "batch/shared", r"batch \* batch_stride \+ row", "row", ""),
    "rows_are_stepped_by_blocks": one(
        "plain", "tile/63x129x63", r"row \* row_stride", "row * block_stride", ""),
    "the_scale_of_the_next_tile": one(
        "turns", "tiles/many", r"tile_at\(problem, index\), out_scales",
        "tile_at(problem, min(index + 1, problem.num_tiles - 1)), out_scales", ""),
    "the_factor_is_stored": one("plain", "tile/64x128x64", r"stores = lane % 4 < 2",
                                 "stores = lane % 4 >= 2"),
    "a_byte_is_rounded_down": one(
        "bytes", "tile/64x128x64", r"__float_as_uint\(x\) \+ 0x7fffffu", "__float_as_uint(x)"),
    "a_byte_is_always_rounded_up": one(
        "bytes", "tiles/many", r"\+ 0x7fffffu", "+ 0x800000u"),
    "an_infinity_is_larger_than_its_amax": one(
        "bytes", "quantised/infinite", r"if \(fmaxf\(upper, lower\) > kLargestFloat\)",
        "if (false)"),
    "the_inverse_of_a_byte_is_half": one("bytes", "tile/64x128x64", r"254 - code", "253 - code"),
}  # fmt: skip
ELEMENTS: Final = {
    "a_product_with_the_reciprocal": one(
        "plain", "tile/65x127x65", r"divide\(stores \? amax : kLargestElement, "
        r"stores \? kLargestElement : amax\)",
        "(stores ? amax * (1.f / kLargestElement) : kLargestElement * (1.f / amax))"),
    "elements_are_divided_by_the_scale": ReportedMutant(
        "plain", "tiles/many",
        (Change(r"lane / 4 \* 4 \+ 2\)", "lane / 4 * 4)"),
         Change(r"lane / 4 \* 4 \+ 3\)", "lane / 4 * 4 + 1)"),
         Change(PAIR, r"pack_e4m3_pair(value[\1] / \2, value[\3] / \4)", 4))),
    "elements_are_cut": one(
        "plain", "tile/64x128x64", PAIR, rf"pack_e4m3_pair({CUT}, value[\3] * \4)", times=4),
    "elements_are_rounded_to_bf16_first": one(
        "plain", "tiles/many", PAIR,
        r"pack_e4m3_pair(__uint_as_float(__float_as_uint(value[\1] * \2) + 0x8000u & 0xffff0000u), "
        r"value[\3] * \4)", times=4),
    "rows_are_multiplied_by_the_factor_of_the_other": ReportedMutant(
        "plain", "tile/64x128x64", (Change(r"lane / 4 \* 4 \+ 2\)", "lane / 4 * 4 + 3)"),)),
    "lower_rows_are_multiplied_by_the_factor_of_the_upper": ReportedMutant(
        "plain", "tile/64x128x64", (Change(r"lane / 4 \* 4 \+ 3\)", "lane / 4 * 4 + 2)"),)),
    "columns_of_a_piece_are_exchanged": ReportedMutant(
        "plain", "tile/64x128x64",
        (Change(r"(cvt\.rn\.satfinite\.e4m3x2\.f32 %0, )%1, %2;", r"\1%2, %1;"),)),
    "rows_of_a_panel_are_exchanged": one(
        "plain", "tile/64x128x64", r"\(group \^ \(line % 8\)\) \* 16 \+", "group * 16 +"),
}  # fmt: skip
RESIDUAL: Final = {
    "the_second_panel_of_c_is_the_first": one(
        "matrix", "residual/positions", r"ahead\.column\(tile\) \+ 64", "ahead.column(tile)"),
    "one_panel_of_c_is_read_twice": one(
        "matrix", "residual/positions", r"group / 4 \* \(kMmaRows \* kPanelBytes\)", "0"),
    "half_of_c_is_expected": one(
        "matrix", "residual/positions", r"stage\.mbar\(\), kEpiBytes\)",
        "stage.mbar(), kEpiBytes / 2)", ""),
    "c_is_overwritten_before_it_is_read": one(
        "matrix", "residual/positions", r"slot \+ line \* kPanelBytes",
        "slot + (line ^ 16) * kPanelBytes", ""),
}  # fmt: skip
_APART: Final = "scales/blocks_apart"
HALVES: Final = {
    "up_is_multiplied_by_gates_columns": one(
        "halves", "tile/128x128x128", r" \+ half \* kOutColumns \* kPanelBytes", ""),
    "up_has_the_scale_of_gate": one(
        "halves", _APART, r"scales\.columns\[0\] : scales\.columns\[1\]",
        "scales.columns[0] : scales.columns[0]"),
    "products_of_up_are_added_to_gate": one(
        "halves", "tile/128x128x128", r"half \* \(kOutColumns / 8\) \+ piece", "piece"),
    "up_has_the_scales_of_the_next_block": one(
        "halves", _APART, r"const LaneScales now = scales;", "const LaneScales& now = scales;"),
    "a_slot_is_released_before_up": one(
        "halves", "depth/392", r"if \(half == 1\) release", "if (half == 0) release", ""),
    "gate_and_up_are_exchanged": one(
        "halves", "tile/128x128x128", r"gated\(alpha \* gate, alpha \* up\)",
        "gated(alpha * up, alpha * gate)"),
}  # fmt: skip
MUTANTS: Final[dict[str, ReportedMutant]] = {
    **AMAX, **SCALES, **ELEMENTS, **RESIDUAL, **HALVES,
}  # fmt: skip
