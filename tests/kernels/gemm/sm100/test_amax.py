"""The amax of products for Blackwell: variants are clean in verify's cases, mutants are found."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from fa4gen.verify.cases import COUNTING
from fa4gen.verify.emulator import EmulatedKernel
from fa4gen.verify.family import family_of
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.memory import read_out
from tests.kernels.gemm.reported import MutantTests, ReportedMutant, VariantTests, one, product
from tests.kernels.source_mutation import Kernel, program_of, ptx_of

Keys = dict[str, Any]
SMALL: Final[Keys] = {"arch": "sm_100a", "dtype": "bf16", "BN": 64, "cta_group": 1,
                      "output_scales": "amax"}  # fmt: skip
VARIANTS: Final[dict[str, Keys]] = {
    "masked groups, a pair": {"groups": "masked", "cta_group": 2, "BN": 128},
    "a matrix, dynamic": {"residual": "matrix", "dtype": "fp16", "scheduler": "dynamic"},
    "nvfp4 in, shared columns": {"dtype": "fp4_e2m1", "scales": "nvfp4", "BN": 256},
    "offsets, in parts": {"groups": "offsets", "activation": "gelu(x) * sigmoid(x)"},
}
CONFIGS: Final[dict[str, Keys]] = {
    "plain": SMALL,
    "offsets": {**SMALL, "groups": "offsets"},
    "hill": {**SMALL, "activation": "exp(-abs(x))", "residual": "row"},  # of zeros it is largest
    "negative": {**SMALL, "activation": "-abs(x)"},
}
UNEVEN, TALL = "groups/uneven", "rings/*"
MUTANTS: Final[dict[str, ReportedMutant]] = {
    "rows_of_the_next_group_count": one(
        "offsets", "groups/inf_neighbours", r"if \(row \+ place\.row >= tile\.end\) amax = 0\.f;",
        ""),
    "rows_past_the_end_count": one(
        "hill", "size/1x1x1", r"if \(row \+ place\.row >= problem\.m\) amax = 0\.f;", ""),
    "the_last_row_is_left_out": one(
        "offsets", UNEVEN, r"row \+ place\.row >= tile\.end", "row + place.row + 1 >= tile.end"),
    "all_groups_raise_the_first": one(
        "offsets", UNEVEN, r"out_amax \+ tile\.batch, amax", "out_amax, amax"),
    "columns_past_the_end_count": one(
        "hill", "size/1x1x1", r"if \(columns > 0\) largest", "largest"),
    "the_second_of_a_pair_counts_with_the_first": one(
        "hill", "size/1x1x1", r"if \(columns > 1\)", "if (columns > 0)"),
    "columns_of_a_tile_begin_with_the_matrix": one(
        "hill", "data/scaled", r"problem\.n - \(tile\.column \+ ", "problem.n - ("),
    "the_sign_stays": one(
        "negative", TALL, r"fabsf\(value(\d)\)", r"value\1", times=2),
    "some_lanes_are_left_out": one(
        "plain", TALL, r"step = 16; step > 0; step /= 2\) amax",
        "step = 2; step > 0; step /= 2) amax"),
    "tiles_before_count_for_the_group": one(
        "offsets", "groups/many", r"(raise_magnitude\(out_amax.*;\s+)amax = 0\.f;", r"\1"),
    "the_rounded_numbers_count": one(
        "plain", "tile/129x63x65", r"fabsf\(value(\d)\)",
        r"fabsf(__uint_as_float(pack(value\1, value\1) << 16))", times=2),
    "it_is_lowered": one("plain", TALL, r"global\.max\.u32", "global.min.u32"),
}  # fmt: skip
FIRST = (
    "rows_of_the_next_group_count",
    "all_groups_raise_the_first",
    "columns_past_the_end_count",
    "some_lanes_are_left_out",
    "it_is_lowered",
)
"""Mutants of every run; all of them with --many-seeds."""


class TestVariants(VariantTests):
    common = SMALL
    variants = VARIANTS
    cases = ("size/33*", "data/scaled", "groups/*")


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = FIRST

    def kernel(self, config: str) -> Kernel:
        return product(CONFIGS[config])


@pytest.mark.compile
def test_it_is_that_of_the_float32_output() -> None:
    """To the bit: by a kernel that differs in the type of the output alone."""
    found = {}
    for name, keys in {"amax": {}, "out": {"output_scales": None, "out_dtype": "fp32"}}.items():
        kernel = product({**SMALL, **keys})
        memory: Any = (
            family_of(kernel.plan)
            .draw(GemmCase("own", 200, 136, 72, alpha=0.7, data=COUNTING), 3)
            .memory
        )
        after = EmulatedKernel(kernel.plan, program_of(ptx_of(kernel))).run(memory)
        if name == "out":
            found[name] = np.abs(read_out(memory, after)).max()
        else:
            view = memory.views["out_amax"]
            found[name] = view.bits(after[view.buffer]).view(np.float32)[0]
    assert found["amax"] == found["out"]
