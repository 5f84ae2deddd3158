"""Mutants of gated matrix products for Hopper, each with the case of verify that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one
from tests.kernels.gemm.sm90.scaled_mutants import FINE, WIDE

SWIGLU: Final = "silu(gate) * up"
CLAMPED: Final = "min(gate, 7) * sigmoid(1.702 * min(gate, 7)) * (max(min(up, 7), -7) + 1)"
_SMALL: Final = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "num_stages": 2, "BM": 64,
                 "BN": 64, "activation": SWIGLU}  # fmt: skip
_TURNS: Final = {"gate_layout": "interleaved"}
_FP8: Final = {"dtype": "fp8_e4m3"}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "halves": _SMALL,
    "narrow": {**_SMALL, "BN": 96},
    "pair": {**_SMALL, "cta_group": 2},
    "n contiguous": {**_SMALL, "b_major": "n", "BN": 256},
    "bias": {**_SMALL, "residual": "row"},
    "bias in turn": {**_SMALL, **_TURNS, "residual": "row", "activation": CLAMPED},
    "float bias": {**_SMALL, "residual": "row", "out_dtype": "fp32"},
    "column": {**_SMALL, "residual": "column"},
    "matrix": {**_SMALL, "residual": "matrix"},
    "blocks": {**_SMALL, **_FP8, "scales": WIDE},
    "lines": {**_SMALL, **_FP8, "scales": FINE},
    "lines in turn": {**_SMALL, **_FP8, **_TURNS, "scales": FINE},
    "exchanged": {**_SMALL, "swap_operands": True, "BM": 16, "BN": 256},
    "exchanged bias": {**_SMALL, "swap_operands": True, "BM": 16, "BN": 128, "residual": "row"},
    "exchanged blocks": {**_SMALL, **_FP8, "swap_operands": True, "BM": 16, "BN": 128, "BK": 128,
                         "scales": WIDE},
}  # fmt: skip


SIZE: Final = "size/33x24x40"
APART: Final = "scales/blocks_apart"
VALUES: Final = {
    "gate_and_up_are_exchanged": one(
        "halves", SIZE, r"gated\(alpha \* gate, alpha \* up\)", "gated(alpha * up, alpha * gate)"),
    "up_has_no_alpha": one(
        "halves", "tile/65x31x65", r"gated\(alpha \* gate, alpha \* up\)",
        "gated(alpha * gate, up)"),
    "up_is_that_of_another_column": one(
        "halves", SIZE, r"sum \+ kOutColumns / 2;", "sum + kOutColumns / 2 - 4;"),
    "up_is_gate": one("halves", SIZE, r"sum \+ kOutColumns / 2;", "sum;"),
    "a_clamp_of_up_is_left_out": one(
        "bias in turn", "data/scaled", r"fmaxf\(fminf\(up, 7\.f\), -7\.f\)", "up"),
    "a_matrix_is_added_to_gate": one(
        "matrix", "residual/positions", r"gated\(alpha \* gate, alpha \* up\) \+ beta \* residual",
        "gated(alpha * gate + beta * residual, alpha * up)"),
    "a_column_is_not_added_to_up": one(
        "column", "residual/positions", r"alpha \* up \+ beta \* up_bias", "alpha * up"),
}  # fmt: skip
COLUMNS: Final = {
    "tiles_are_as_far_apart_as_columns_of_b": one(
        "halves", "tiles/many", r"(in_group / rows) \* kOutColumns", r"\1 * kBN", ""),
    "half_of_the_last_columns_are_dropped": one(
        "narrow", "tile/64x48x64", r"group < kLastPanelColumns / 16",
        "group < kLastPanelColumns / 32", ""),
    "both_halves_begin_with_up": one(
        "halves", SIZE, r"tile\.column, 0, tile\.batch", "tile.column, 1, tile.batch"),
    "the_second_half_is_loaded_from_the_next_column": one(
        "pair", "tile/128x32x64", r"(first_line % kOutColumns), (first_line / kOutColumns)",
        r"\1 + rank, \2"),
    "both_ctas_of_a_pair_bring_gate": one(
        "pair", "tile/128x32x64", r"first_line / kOutColumns", "0"),
    "a_pair_brings_up_behind_the_end_of_gate": one(
        "pair", "tile/128x32x64", r"first_line % kOutColumns", "first_line"),
    "a_panel_of_up_is_one_of_gate": one(
        "n contiguous", SIZE, r"panel / \(kOutColumns / kPanelColumns\)", "0"),
    "panels_of_up_go_on_behind_those_of_gate": one(
        "n contiguous", "tile/64x128x64", r"panel % \(kOutColumns / kPanelColumns\)", "panel"),
    "the_second_warpgroup_multiplies_gate_by_the_first": one(
        "exchanged", "tile/16x128x128", r"i \* kOutColumns", "i * kMmaRows"),
    "exchanged_sums_of_up_are_those_of_gate": one(
        "exchanged", SIZE, r"sums\[kPanelsOfTile \+ i\]", "sums[i]"),
    "a_consumer_writes_columns_of_another": one(
        "exchanged", "tile/16x128x128", r"consumer \* kMmaRows", "0", "", times=2),
}  # fmt: skip
BIASES: Final = {
    "up_has_the_bias_of_gate": one(
        "bias", "residual/positions", r"problem\.n \+ (ahead\.column)", r"\1"),
    "the_bias_of_up_begins_late": one(
        "bias", "residual/positions", r"problem\.n \+ (ahead\.column)", r"problem.n + 8 + \1"),
    "the_bias_of_up_is_read_from_that_of_gate": one(
        "bias", "residual/positions", r"up_slot = residual_slot \+ kResidualBytes / 2",
        "up_slot = residual_slot"),
    "an_absent_bias_of_up_counts": one(
        "bias", "factor/beta_0", r"(up_slot \+ lane|up_slot \+ 32 \* group \+ lane)([^;]*) & keep;",
        r"\1\2;"),
    "biases_in_turn_are_taken_from_half_the_column": one(
        "bias in turn", "residual/positions", r"2 \* \((ahead\.column\(tile\))\)", r"\1"),
    "the_second_bias_in_turn_is_the_first": one(
        "bias in turn", "residual/positions", r"0x7632", "0x5410", times=4),
    "a_float_bias_of_up_is_that_of_gate": one(
        "float bias", "residual/positions", r"residual_slot \+ kResidualBytes / 2 \+ 32",
        "residual_slot + 32"),
    "an_exchanged_bias_of_up_is_that_of_gate": one(
        "exchanged bias", "residual/positions", r"of_row \+ kResidualBytes / 2", "of_row"),
}  # fmt: skip
SCALES: Final = {
    "up_has_the_scale_of_gate": one(
        "blocks", APART, r"\(column \+ half \* problem\.n\) / 128", "column / 128"),
    "gate_has_the_scale_of_up": one(
        "blocks", APART, r"8 \* group < kOutColumns", "8 * group > kOutColumns"),
    "a_column_of_up_has_the_scale_of_gate": one(
        "lines", APART, r"column \+ half \* problem\.n", "column"),
    "scales_in_turn_are_taken_as_halves": one(
        "lines in turn", APART, r"2 \* column \+ half", "column + half * problem.n"),
    "scales_of_gate_are_taken_past_the_last_column": one(
        "lines", "tile/63x33x127", r"(product % kOutColumns), problem\.n - 1", r"\1, 2 * problem.n",
        ""),
    "exchanged_up_has_the_scale_of_gate": one(
        "exchanged blocks", APART, r"\(first \+ half \* problem\.n\) / 128", "first / 128"),
}  # fmt: skip
MUTANTS: Final[dict[str, ReportedMutant]] = {**VALUES, **COLUMNS, **BIASES, **SCALES}
