"""The amax of products for Hopper: variants are clean in verify's cases, mutants are reported."""

from __future__ import annotations

from typing import Any

from tests.kernels.gemm.reported import MutantTests, VariantTests
from tests.kernels.gemm.sm90.amax_mutants import CONFIGS, MUTANTS, SMALL

VARIANTS: dict[str, dict[str, Any]] = {
    "groups, a pair, in turn": {"groups": "masked", "cta_group": 2, "ping_pong": True},
    "split, a matrix": {"split_k": 2, "residual": "matrix", "dtype": "fp16"},
    "groups along k": {"groups": "k_offsets", "a_major": "m", "b_major": "n"},
    "scales, columns": {
        "dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}, "cta_group": 2, "share": "a",
        "groups": "offsets",
    },
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
