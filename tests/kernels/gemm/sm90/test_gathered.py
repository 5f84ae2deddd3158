"""Products with gathered rows for Hopper: variants are clean, mutants are reported by verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.resources import data_root
from tests.kernels.gemm.reported import MutantTests, VariantTests
from tests.kernels.gemm.sm90.gathered_mutants import CONFIGS, MUTANTS
from tests.kernels.gemm.sm90.scaled_mutants import FINE, WIDE

if TYPE_CHECKING:
    from tests.kernels.source_mutation import Kernel

Keys = dict[str, Any]
FP8: Keys = {"dtype": "fp8_e4m3"}
VARIANTS: dict[str, Keys] = {
    "fp8": {**FP8, "BM": 128},
    "fp16, ping_pong": {"dtype": "fp16", "ping_pong": True, "residual": "row"},
    "256 rows": {"BM": 256, "b_major": "n", "residual": "matrix"},
    "128 rows, a pair": {"BM": 128, "BN": 48, "cta_group": 2},
    "four share in turns": {"BM": 64, "BN": 48, "cta_group": 4},
    "the output in the ring": {"output_in_ring": True, "short_ends": True, "cta_group": 2},
    "swapped, 16 rows": {"BM": 16, "swap_operands": True, "activation": "silu(x)"},
    "split": {"split_k": 2, "residual": "column"},
    "one slot": {"num_stages": 1},
    "gated": {"groups": "offsets", "activation": "silu(gate) * up"},
    "masked, swapped": {"groups": "masked", "BM": 24, "swap_operands": True},
    "lines, a pair": {**FP8, "scales": FINE, "BM": 128, "cta_group": 2},
    "bytes, masked": {**FP8, "scales": {**WIDE, "dtype": "ue8m0"}, "groups": "masked"},
    "256 of k, split": {**FP8, "scales": WIDE, "BK": 256, "split_k": 2},
    "256 rows in turn": {**FP8, "scales": WIDE, "BM": 256},
    "gate, then up": {**FP8, "scales": WIDE, "BN": 256, "activation": "silu(gate) * up"},
    "swapped with scales": {**FP8, "scales": WIDE, "BM": 48, "swap_operands": True},
}
ALWAYS = (
    "the_index_is_a_row_off",
    "a_tile_has_the_index_of_the_tile_before",
    "the_index_is_read_past_its_end",
    "an_index_of_no_row_is_the_first",
    "every_batch_has_the_index_of_the_first",
    "a_group_has_the_index_of_the_first_row_on",
    "rows_are_not_swizzled",
    "the_last_chunk_is_copied_whole",
    "the_fence_is_missing",
    "lanes_arrive_before_their_copies",
    "scales_are_those_of_the_rows_of_the_output",
    "a_row_of_zeros_has_the_first_scale",
)
"""Made in every run; all of them with --many-seeds."""


COMMON: Keys = {"arch": "sm_90a", "dtype": "bf16", "rows": "gathered", "BM": 64, "BN": 64}


def test_every_order_of_products_waits_for_gathered_rows() -> None:
    folder = data_root("templates") / "gemm_sm90" / "sums"
    texts = [path.read_text() for path in folder.glob("*.cuh.j2")]
    assert sum("rows_of_a.wait_block()" in text for text in texts) >= 3
    assert not [text for text in texts if "input.wait_producer()" in text]


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS

    def cases_of(self, kernel: Kernel) -> tuple[str, ...]:
        scales = ("scales/blocks_apart",) if kernel.plan.scales else ()
        groups = ("groups/uneven", "groups/nan_neighbours") if kernel.plan.groups else ()
        return ("index/*", "depth/*", *scales, *groups)


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = ALWAYS
