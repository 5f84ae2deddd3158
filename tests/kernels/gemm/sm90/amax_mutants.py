"""Mutants of Hopper's products that find an amax, each with the case that reports it."""

from __future__ import annotations

from typing import Any, Final

from tests.kernels.gemm.reported import ReportedMutant, one

SMALL: Final = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16", "output_scales": "amax",
                "num_stages": 2, "BM": 64, "BN": 64}  # fmt: skip
CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "plain": {**SMALL, "BM": 128, "num_consumer_warpgroups": 1},
    "offsets": {**SMALL, "groups": "offsets"},
    "hill": {**SMALL, "activation": "exp(-abs(x))", "residual": "row"},  # of zeros it is largest
    "negative": {**SMALL, "activation": "-abs(x)"},
}
UNEVEN, TALL = "groups/uneven", "rings/*"
MUTANTS: Final[dict[str, ReportedMutant]] = {
    "rows_of_the_next_group_count": one(
        "offsets", UNEVEN, r"upper < end \? largest\[0\] : 0\.f", "largest[0]"),
    "lower_rows_count_with_the_upper": one(
        "offsets", "groups/inf_neighbours",
        r"upper \+ 8 < end \? largest\[1\] : 0\.f", "upper < end ? largest[1] : 0.f"),
    "the_lower_rows_are_left_out": one(
        "offsets", UNEVEN, r"upper \+ 8 < end \? largest\[1\] : 0\.f", "0.f"),
    "all_groups_raise_the_first": one(
        "offsets", UNEVEN, r"out_amax \+ tile\.batch, amax", "out_amax, amax"),
    "columns_past_the_end_count": one(
        "hill", "size/1x1x1", r"if \(columns > 0\) largest", "largest"),
    "the_second_of_a_pair_counts_with_the_first": one(
        "hill", "size/1x1x1", r"if \(columns > 1\)", "if (columns > 0)"),
    "the_sign_stays": one(
        "negative", TALL, r"fabsf\(value(\d)\)", r"value\1", times=2),
    "some_lanes_are_left_out": one(
        "plain", TALL, r"step = 16; step > 0; step /= 2\) amax",
        "step = 2; step > 0; step /= 2) amax"),
    "the_last_rows_alone_count": one(
        "plain", "tile/129x63x65", r"amax = fmaxf\(amax, fmaxf\(upper",
        "amax = fmaxf(0.f, fmaxf(upper"),
    "the_rounded_numbers_count": one(
        "plain", "tile/129x63x65", r"fabsf\(value(\d)\)",
        r"fabsf(__uint_as_float(pack(value\1, value\1) << 16))", times=2),
    "it_is_lowered": one("plain", TALL, r"global\.max\.u32", "global.min.u32"),
}  # fmt: skip
