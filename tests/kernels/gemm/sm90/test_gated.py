"""Gated matrix products for Hopper: variants are clean in verify's cases, mutants are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.kernels.gemm.reported import DrawnTests, MutantTests, VariantTests
from tests.kernels.gemm.sm90.gated_mutants import CLAMPED, CONFIGS, FINE, MUTANTS, SWIGLU, WIDE
from tests.kernels.gemm.sm90.test_scaled import any_keys

if TYPE_CHECKING:
    from random import Random

Keys = dict[str, Any]
TURNS = {"gate_layout": "interleaved"}
FP8 = {"dtype": "fp8_e4m3"}
FEW = {"swap_operands": True, "BM": 16}
VARIANTS: dict[str, Keys] = {
    "in turn, clamped, bias": {**TURNS, "activation": CLAMPED, "residual": "row", "BN": 160},
    "gelu, narrow panel, matrix": {"activation": "gelu(gate) * up", "BN": 96, "residual": "matrix"},
    "both transposed, bias": {"a_major": "m", "b_major": "n", "BN": 128, "residual": "row"},
    "pair": {"cta_group": 2, "BN": 96, **TURNS},
    "four": {"cta_group": 4, "share": "both"},
    "eight": {"cta_group": 8, **FP8},
    "across, bias": {"cta_group": 2, "share": "a", "residual": "row"},
    "split, bias": {"split_k": 2, "residual": "row"},
    "ping_pong, floats, matrix": {"ping_pong": True, "out_dtype": "fp32", "residual": "matrix"},
    "192 rows, floats, bias": {"BM": 192, "out_dtype": "fp32", "residual": "row", **TURNS},
    "the output in the ring": {"output_in_ring": True, "short_ends": True},
    "few rows, column, split": {**FEW, "BN": 128, "residual": "column", "split_k": 2},
    "few rows, bias": {**FEW, "BM": 24, "BN": 256, "residual": "row"},
    "few rows, pair, matrix": {**FEW, "BM": 48, "BN": 128, "residual": "matrix", "cta_group": 2},
    "blocks, pair, bias": {**FP8, "scales": WIDE, "BN": 128, "residual": "row", "cta_group": 2},
    "blocks in turn": {**FP8, **TURNS, "scales": WIDE},
    "lines in turn": {**FP8, **TURNS, "scales": FINE, "BN": 128},
    "few rows, blocks": {**FP8, **FEW, "scales": WIDE, "BN": 256},
    "few rows, lines in turn": {**FP8, **FEW, **TURNS, "scales": FINE, "BN": 128},
    "exact": {"dtype": "fp16", "activation": "max(gate, 0) * up", "out_dtype": "fp32"},
    "groups": {"groups": "offsets", "residual": "matrix"},
}
ALWAYS = (
    "gate_and_up_are_exchanged",
    "up_is_that_of_another_column",
    "a_matrix_is_added_to_gate",
    "half_of_the_last_columns_are_dropped",
    "the_second_half_is_loaded_from_the_next_column",
    "panels_of_up_go_on_behind_those_of_gate",
    "the_second_warpgroup_multiplies_gate_by_the_first",
    "up_has_the_bias_of_gate",
    "the_second_bias_in_turn_is_the_first",
    "up_has_the_scale_of_gate",
    "scales_in_turn_are_taken_as_halves",
)
"""Made in every run; all of them with --many-seeds."""


COMMON: Keys = {"arch": "sm_90a", "dtype": "bf16", "activation": SWIGLU, "BM": 64, "BN": 64}


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS
    cases = ("size/*", "batch/shared", "depth/0", "factor/*")


class TestDrawn(DrawnTests):
    common = COMMON
    num_drawn = 3

    def keys(self, random: Random) -> Keys:
        keys = any_keys(random)
        keys |= {"activation": random.choice((SWIGLU, SWIGLU, CLAMPED, "gelu(gate) * up")),
                 "gate_layout": random.choice(("halves", "interleaved")),
                 "b_major": random.choice(("k", "k", "n"))}  # fmt: skip
        if random.random() < 0.5:
            del keys["scales"]
            return {**keys, "dtype": random.choice(("bf16", "fp16"))}
        return {**keys, "dtype": "fp8_e4m3"}


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = ALWAYS
