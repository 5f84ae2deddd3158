"""Mutants of gated matrix products for Blackwell, each with the case of verify that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one
from tests.kernels.gemm.sm90.gated_mutants import CLAMPED, SWIGLU

_SMALL: Final = {"kernel": "gemm", "arch": "sm_100a", "dtype": "bf16", "num_stages": 2, "BN": 64,
                 "cta_group": 1, "activation": SWIGLU}  # fmt: skip
_PAIR: Final = {**_SMALL, "cta_group": 2}
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "halves": _SMALL,
    "pair": {**_PAIR, "BN": 128},
    "n contiguous": {**_SMALL, "b_major": "n", "BN": 256},
    "bias": {**_SMALL, "residual": "row"},
    "bias in turn": {**_SMALL, "gate_layout": "interleaved", "residual": "row",
                     "activation": CLAMPED},
    "quarters": {**_SMALL, "BM": 64, "BN": 128},
    "mxfp8": {**_SMALL, "BN": 256, "dtype": "fp8_e4m3", "scales": "mxfp8"},
    "mxfp8 pair": {**_PAIR, "BN": 256, "dtype": "fp8_e4m3", "scales": "mxfp8"},
}  # fmt: skip


SIZE: Final = "size/33x24x40"
APART: Final = "scales/blocks_apart"
MUTANTS: Final[dict[str, ReportedMutant]] = {
    "gate_and_up_are_exchanged": one(
        "halves", SIZE, r"gated\(alpha \* gate, alpha \* up\)", "gated(alpha * up, alpha * gate)"),
    "up_is_read_from_gate": one("halves", SIZE, r"(address \+) kOutColumns \+", r"\1"),
    "up_is_a_column_off": one(
        "quarters", "tile/64x64x64", r"(address \+) kOutColumns \+", r"\1 kOutColumns - 1 +"),
    "a_chunk_has_up_of_the_first": one(
        "halves", "tile/128x32x64", r"up \+ \(?kChunk \* i[^,]*,", "up,"),
    "tiles_are_as_far_apart_as_columns_of_b": one(
        "halves", "tiles/many", r"(in_group / rows) \* kOutColumns", r"\1 * kBN", ""),
    "both_ctas_of_a_pair_bring_gate": one(
        "pair", "tile/256x64x64", r"column, half,(\s+)batch", r"column, 0,\1batch"),
    "a_pair_brings_up_a_column_late": one(
        "pair", "tile/256x64x64", r"column, half,(\s+)batch", r"column + half, half,\1batch"),
    "a_panel_of_up_is_one_of_gate": one(
        "n contiguous", SIZE, r"panel / \(kOutColumns / kBPanel\)", "0"),
    "up_has_the_bias_of_gate": one("bias", "residual/positions", r"n \+ column", "column"),
    "the_bias_of_up_is_read_from_that_of_gate": one(
        "bias", "residual/positions", r"from \+ kRowPieceBytes \+", "from +"),
    "biases_in_turn_are_taken_from_half_the_column": one(
        "bias in turn", "residual/positions", r"2 \* column", "column"),
    "the_second_bias_in_turn_is_the_first": one(
        "bias in turn", "residual/positions", r"0x7632", "0x5410", times=4),
    "up_has_the_scales_of_gate": one("mxfp8", APART, r"column \+ n \* half", "column"),
    "gate_has_the_scales_of_up": one(
        "mxfp8", APART, r"column \+ n \* half", "column + n * (1 - half)"),
    "both_ctas_of_a_pair_bring_scales_of_gate": one(
        "mxfp8 pair", APART, r"column \+ n \* rank", "column"),
}  # fmt: skip
