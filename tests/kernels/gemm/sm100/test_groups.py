"""Products of groups for Blackwell: variants are clean in verify's cases, mutants are reported.

What a group gives does not depend on its neighbours by a bit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fa4gen.verify.gemm.inputs import make_inputs
from tests.kernels.gemm.reported import MutantTests, VariantTests, product
from tests.kernels.gemm.sm90.test_groups import bits_of, case_of, with_group
from tests.kernels.gemm.sm100.grouped_mutants import CONFIGS, MUTANTS

Keys = dict[str, Any]
MXFP8 = {"dtype": "fp8_e4m3", "scales": "mxfp8"}
NVFP4 = {"dtype": "fp4_e2m1", "scales": "nvfp4"}
SWIGLU = "silu(gate) * up"
PAIR = {"cta_group": 2}
VARIANTS: dict[str, Keys] = {
    "a pair": {**PAIR, "residual": "matrix", "dtype": "fp16"},
    "64 rows": {"BM": 64, "groups": "masked", "a_major": "m", "residual": "column"},
    "a pair of 64 rows": {**PAIR, "BM": 64, "residual": "row", "b_major": "n"},
    "fp8, gated": {"dtype": "fp8_e4m3", "activation": SWIGLU, "residual": "row"},
    "fp32": {"out_dtype": "fp32", "activation": "gelu(x)", "groups": "masked"},
    "mxfp8, a pair": {**MXFP8, **PAIR, "residual": "row"},
    "mxfp8, gated, masked": {**MXFP8, "BN": 256, "activation": SWIGLU, "groups": "masked"},
    "mxfp8, rows, a pair": {**MXFP8, **PAIR, "scale_order": "row_major"},
    "nvfp4": {**NVFP4, "BN": 192},
    "nvfp4, masked, a pair": {**NVFP4, **PAIR, "BN": 64, "groups": "masked"},
    "mxfp4, accumulators overlap": {**NVFP4, "scales": "mxfp4", "BN": 256, "residual": "matrix"},
    "quantised, gated": {"output_scales": "1x128", "BN": 256, "activation": SWIGLU},
    "atoms in and out, a pair": {**MXFP8, **PAIR, "output_scales": "mxfp8",
                                 "output_scale_order": "arranged"},
}  # fmt: skip
FIRST = (
    "counts_are_read_before_they_are_there",
    "a_warp_looks_at_the_first_groups_alone",
    "tail_rows_of_the_neighbour_are_written",
    "the_tail_is_not_clipped",
    "the_second_cta_has_the_rows_of_the_first",
    "the_weights_of_the_group_before_are_read",
    "a_group_is_stored_as_the_first",
    "rows_of_c_are_the_ones_before",
    "all_groups_begin_at_the_first_atom",
    "atoms_past_a_lane_begin_again",
    "the_second_cta_has_the_atom_of_the_first",
    "rows_of_scales_are_those_of_the_first_group",
    "scales_of_the_neighbour_are_written",
    "output_atoms_begin_with_the_rows",
    "padding_of_a_group_is_no_zero",
)
"""Mutants of every run; all of them with --many-seeds."""


COMMON: Keys = {
    "arch": "sm_100a", "dtype": "bf16", "BN": 128, "cta_group": 1, "groups": "offsets",
}  # fmt: skip


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS
    cases = ("groups/*",)


@pytest.mark.compile
@pytest.mark.parametrize("groups", ["offsets", "masked"])
@pytest.mark.parametrize("keys", [{"residual": "row", **PAIR}, MXFP8, NVFP4], ids=str)
def test_a_group_is_the_same_whatever_its_neighbours(groups: str, keys: Keys) -> None:
    kernel = product({**COMMON, **keys, "groups": groups})
    rng = np.random.default_rng(5)
    alone = case_of("alone", (149,), (0, 0))
    inputs = make_inputs(alone, kernel.plan, rng)
    expected = bits_of(kernel, alone, inputs, 0)
    assert len(set(expected)) > 9
    for counts, apart, value in (
        ((7, 149, 130), (1, 2), None),
        ((0, 64, 149, 0, 3), (3, 5), np.nan),
    ):
        case, group = case_of("among others", counts, apart), counts.index(149)
        others = make_inputs(case, kernel.plan, rng)
        if value is not None:
            for array in (*others.scales, *([others.a, others.b] * ("scales" not in keys))):
                array[...] = value
        filled = with_group(replace(others, alpha=inputs.alpha), inputs, group, 0)
        assert bits_of(kernel, case, filled, group) == expected


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = FIRST
