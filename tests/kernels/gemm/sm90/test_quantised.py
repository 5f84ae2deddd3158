"""Quantised outputs on Hopper: equal to quantize of float32 to the bit; mutants are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fa4gen.scales import quantize
from fa4gen.verify.cases import COUNTING
from fa4gen.verify.emulator import EmulatedKernel
from fa4gen.verify.family import family_of
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.memory import read_bits, read_out
from tests.kernels.gemm.reported import DrawnTests, MutantTests, VariantTests, product
from tests.kernels.gemm.sm90.quantised_mutants import CONFIGS, MUTANTS
from tests.kernels.source_mutation import program_of, ptx_of

if TYPE_CHECKING:
    from random import Random

    from tests.kernels.source_mutation import Kernel

Keys = dict[str, Any]
WIDE = {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "128x128"}}
FINE = {"dtype": "fp8_e4m3", "scales": {"a": "1x128", "b": "1x128", "dtype": "ue8m0"}}
BYTES = {"output_scale_dtype": "ue8m0"}
VARIANTS: dict[str, Keys] = {
    "256 columns, bytes, bias, silu": {**BYTES, "BN": 256, "residual": "row",
                                       "activation": "silu(x)"},
    "scaled, in turn": {**WIDE, "ping_pong": True},
    "scaled, split": {**FINE, **BYTES, "split_k": 2},
    "a grid, a matrix": {"cta_group": 8, "residual": "matrix"},
    "192 rows, fp16": {"BM": 192, "dtype": "fp16", "residual": "matrix", "num_epi_stages": 1},
    "a pair, a column": {"cta_group": 2, "residual": "column", "activation": "exp(x)"},
    "fp8, the output in the ring": {"dtype": "fp8_e4m3", "output_in_ring": True,
                                    "short_ends": True},
    "two row blocks": {"BM": 256, "activation": "max(x, 0)", "residual": "matrix"},
    "gated, a bias": {"BN": 256, "activation": "silu(gate) * up", "residual": "row"},
    "gated, interleaved, a matrix": {"BN": 256, "activation": "gelu(gate) * up", **BYTES,
                                     "gate_layout": "interleaved", "residual": "matrix"},
    "scaled, gated": {**WIDE, "BN": 256, "activation": "silu(gate) * up"},
    "scaled, gated, A in registers": {**WIDE, "BM": 128, "BN": 256,
                                      "activation": "silu(gate) * up"},
    "scaled, gated, in turn": {**WIDE, **BYTES, "BN": 256, "BM": 128, "residual": "row",
                               "activation": "silu(gate) * up", "cta_group": 2},
    "groups, a pair": {"groups": "offsets", "cta_group": 2, "residual": "matrix"},
    "masked groups": {"groups": "masked", "activation": "exp(x)", "residual": "row"},
    "n contiguous": {"b_major": "n", "a_major": "m", "BN": 256},
}  # fmt: skip
ALWAYS = (
    "amax_of_half_of_the_columns",
    "amax_before_the_activation",
    "zeros_have_no_scale",
    "an_infinity_is_the_amax",
    "nan_is_the_amax",
    "columns_past_the_end_count",
    "blocks_of_a_row_exchange_scales",
    "the_scale_of_the_next_row",
    "the_second_cta_has_the_rows_of_the_first",
    "scales_of_rows_past_the_end",
    "a_byte_is_rounded_down",
    "a_product_with_the_reciprocal",
    "elements_are_divided_by_the_scale",
    "elements_are_rounded_to_bf16_first",
    "the_second_panel_of_c_is_the_first",
)
"""Made in every run; all of them with --many-seeds."""


COMMON: Keys = {"arch": "sm_90a", "dtype": "bf16", "BM": 64, "BN": 128, "output_scales": "1x128"}


def variant(keys: Keys) -> Kernel:
    return product({**COMMON, **keys})


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS
    cases = ("quantised/*", "tile/*", "batch/shared", "depth/0")


def run(kernel: Kernel) -> tuple[Any, Any]:
    """Return the memory of a case with sums that are exact, and the buffers after the kernel."""
    case = GemmCase("own/counting", 70, 200, 136, alpha=0.7, beta=-1.3, data=COUNTING)
    memory: Any = family_of(kernel.plan).draw(case, 3).memory
    return memory, EmulatedKernel(kernel.plan, program_of(ptx_of(kernel))).run(memory)


@pytest.mark.compile
@pytest.mark.parametrize("scale", ["fp32", "ue8m0"])
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"activation": "gelu(x)", "BN": 256},
        {**WIDE, "activation": "sigmoid(x)"},
        {"activation": "silu(gate) * up", "BN": 256},
    ],
    ids=str,
)
def test_the_output_is_quantize_of_the_float32_output(keys: Keys, scale: str) -> None:
    """To the bit: by a kernel that differs in the output alone."""
    memory, after = run(variant({**keys, "output_scales": None, "out_dtype": "fp32"}))
    wanted = quantize(read_out(memory, after), "1x128", scale=scale)
    memory, after = run(variant({**keys, "output_scale_dtype": scale}))
    assert np.array_equal(read_bits(memory, after, "out"), wanted.elements)
    found = read_bits(memory, after, "out_scales")
    assert np.array_equal(found, wanted.scales.view(found.dtype))


def any_keys(random: Random) -> Keys:
    def some(*values: Any) -> Any:
        return random.choice(values)

    return {
        **some({}, {}, {"dtype": "fp16"}, {"dtype": "fp8_e4m3"}, WIDE, FINE),
        "BM": some(64, 128, 192, 256), "BN": some(128, 128, 256), "split_k": some(1, 1, 2),
        "cta_group": some(1, 1, 2, 4, 8), "ping_pong": some(False, True),
        "share": some("auto", "auto", "a", "both"), "num_stages": some(1, 2, 3),
        "residual": some("none", "none", "matrix", "row", "column"),
        "activation": some(None, None, "silu(x)", "exp(x)", "max(x, 0)"),
        "short_ends": some(False, True), "output_in_ring": some(False, False, True),
        "num_epi_stages": some("auto", 1, 2), "output_scale_dtype": some("fp32", "ue8m0"),
    }  # fmt: skip


class TestDrawn(DrawnTests):
    common = COMMON
    always = ("quantised/apart",)

    def keys(self, random: Random) -> Keys:
        return any_keys(random)


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = ALWAYS
