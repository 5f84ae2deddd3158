"""Quantised outputs on Blackwell: equal to quantize of float32 to the bit; mutants are reported."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

from fa4gen.scales import quantize
from fa4gen.verify.cases import COUNTING
from fa4gen.verify.emulator import EmulatedKernel
from fa4gen.verify.family import family_of
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.memory import read_bits, read_out
from tests.kernels.gemm.reported import MutantTests, ReportedMutant, VariantTests, one, product
from tests.kernels.source_mutation import (
    Change,
    Kernel,
    program_of,
    ptx_of,
)

Keys = dict[str, Any]
MXFP8: Final = {"output_scales": "mxfp8"}
BLOCKS: Final = {"output_scales": "1x128"}
BYTES: Final = {**BLOCKS, "output_scale_dtype": "ue8m0"}
VARIANTS: dict[str, Keys] = {
    "256 columns, a pair, silu": {**BLOCKS, "BN": 256, "cta_group": 2, "activation": "silu(x)"},
    "bytes, dynamic": {**BYTES, "scheduler": "dynamic"},
    "mxfp8 in and out": {**MXFP8, "dtype": "fp8_e4m3", "scales": "mxfp8", "cta_group": 2},
    "gated": {**MXFP8, "BN": 256, "activation": "silu(gate) * up"},
    "arranged, a pair": {**MXFP8, "output_scale_order": "arranged", "cta_group": 2},
    "gated, interleaved": {**BLOCKS, "BN": 256, "activation": "gelu(gate) * up",
                           "gate_layout": "interleaved"},
    "matrix, a pair": {**MXFP8, "residual": "matrix", "cta_group": 2, "dtype": "fp16"},
    "bias, interleaved": {**BLOCKS, "BN": 256, "residual": "row", "gate_layout": "interleaved",
                          "activation": "silu(gate) * up"},
    "matrix, gated, arranged": {**MXFP8, "output_scale_order": "arranged", "BN": 256,
                                "residual": "matrix", "activation": "silu(gate) * up"},
    "column, exp": {**BYTES, "residual": "column", "activation": "exp(x)"},
    "one accumulator": {**MXFP8, "num_accum_stages": 1, "num_out_stages": 1,
                        "activation": "exp(x)"},
}  # fmt: skip
CONFIGS: dict[str, Keys] = {
    "plain": BLOCKS,
    "bytes": BYTES,
    "mxfp8": MXFP8,
    "pair": {**MXFP8, "cta_group": 2},
    "atoms": {**MXFP8, "output_scale_order": "arranged", "cta_group": 2, "BN": 256},
    "exp": {**MXFP8, "activation": "exp(x)"},
    "silu": {**BLOCKS, "activation": "silu(x)"},
    "matrix": {**MXFP8, "residual": "matrix"},
    "bias": {**BLOCKS, "residual": "row", "BN": 256, "activation": "silu(gate) * up"},
}


TILE: Final = "tile/128x128x64"
MUTANTS: Final[dict[str, ReportedMutant]] = {
    "amax_of_half_of_the_columns": one(
        "plain", TILE, r"j < kScaledColumns; \+\+j\) amax", "j < kScaledColumns / 2; ++j) amax"),
    "amax_of_numbers_with_their_sign": one(
        "mxfp8", TILE, r"fmaxf\(amax, fabsf\(values\[j\]\)\)", "fmaxf(amax, values[j])"),
    "zeros_have_no_scale": one(
        "plain", "depth/0", r"fmaxf\(fminf\(amax, kLargestFloat\), kLeastAmax\)",
        "fminf(amax, kLargestFloat)"),
    "an_infinity_is_the_amax": one(
        "plain", "quantised/infinite", r"fminf\(amax, kLargestFloat\)", "amax"),
    "an_infinity_is_larger_than_its_amax": one(
        "bytes", "quantised/infinite", r"if \(amax > kLargestFloat\)", "if (false)"),
    "nan_is_the_amax": one(
        "mxfp8", "quantised/nan", r"amax = fmaxf\(amax, fabsf\(values\[j\]\)\)",
        "amax = fabsf(values[j]) <= amax ? amax : fabsf(values[j])"),
    "columns_past_the_end_count": one(
        "exp", "tile/127x129x63", r"if \(problem\.n - column < kOutPanel\)", "if (false)"),
    "amax_before_the_activation": ReportedMutant(
        "silu", TILE,
        (Change(r"return activation\((.*)\);", r"return \1;"),
         Change(r"values\[(\d+)\] \* factor", r"activation(values[\1]) * factor", 16))),
    "the_scale_of_the_next_block": one(
        "mxfp8", TILE, r"row, column \+ first, scale\)",
        "row, (column + first) / 32 % 2 == 0 ? column + first + 32 : column + first - 32, scale)"),
    "the_scale_of_the_next_row": one(
        "plain", TILE, r"store\(tile\.batch, row, column", "store(tile.batch, row ^ 1, column"),
    "scales_of_rows_past_the_end": one(
        "plain", "tile/127x129x63", r"row < problem\.m && ", "", ""),
    "scales_of_blocks_past_the_end": one(
        "mxfp8", "tile/127x129x63", r" && column \+ first < problem\.n", "", ""),
    "the_second_cta_has_the_rows_of_the_first": one(
        "pair", "tile/256x128x64", r"tile\.row \+ rank \* kBM, tile", "tile.row, tile", ""),
    "every_block_has_the_first_columns": one(
        "mxfp8", TILE, r"address \+ first \+ part", "address + part"),
    "blocks_are_stored_over_each_other": one(
        "mxfp8", TILE, r"first / kChunk \+ i", "i", ""),
    "a_line_is_that_of_the_next_row": one(
        "atoms", "tile/257x255x65", r"row % 32 \* 16", "(row + 1) % 32 * 16"),
    "groups_of_lines_are_exchanged": one(
        "atoms", "tile/257x255x65", r"row % 128 / 32 \* 4", "(row % 128 / 32 ^ 1) * 4"),
    "bytes_of_a_word_are_exchanged": one(
        "atoms", "tile/257x255x65", r"first / kScaledColumns \* 8",
        "(first / kScaledColumns ^ 1) * 8"),
    "atoms_of_rows_are_stepped_by_those_of_blocks": one(
        "atoms", "tile/257x255x65", r"row / 128 \* row_stride", "row / 128 * block_stride", ""),
    "padding_of_rows_is_no_zero": one(
        "atoms", "tile/257x255x65",
        r"row < problem\.m && (column \+ first < problem\.n\)\s+word)", r"\1"),
    "padding_of_blocks_is_no_zero": one(
        "atoms", "quantised/apart",
        r"(row < problem\.m) && column \+ first < problem\.n(\)\s+word)", r"\1\2"),
    "an_atom_past_the_rows_is_written": one(
        "atoms", "size/33x24x40", r"row / 128 \* 128 < problem\.m && ", "", ""),
    "an_atom_past_the_blocks_is_written": one(
        "atoms", "size/33x24x40", r" && column < problem\.n(\)\s+out_scales\.store)", r"\1", ""),
    "a_byte_is_rounded_down": one(
        "mxfp8", TILE, r"__float_as_uint\(x\) \+ 0x7fffffu", "__float_as_uint(x)"),
    "the_inverse_of_a_byte_is_half": one("mxfp8", TILE, r"254 - code", "253 - code"),
    "a_product_with_the_reciprocal": one(
        "plain", "tile/129x127x65", r"divide\(kLargestElement, amax\)",
        "kLargestElement * (1.f / amax)"),
    "a_scale_by_the_reciprocal": one(
        "plain", "tile/129x127x65", r"divide\(amax, kLargestElement\)",
        "amax * (1.f / kLargestElement)"),
    "both_panels_of_c_are_the_first": one(
        "matrix", "residual/positions", r"i / 8 \* kOutPanelBytes \+ ", ""),
    "the_second_panel_of_c_is_loaded_as_the_first": one(
        "matrix", "residual/positions", r"column \+ 64,", "column,"),
    "c_is_read_before_it_is_there": one(
        "matrix", TILE, r"if \(has_residual\) residual\.wait_producer\(\);", "", ""),
    "the_slot_of_c_is_not_given_back": one(
        "matrix", "tiles/many", r"mbarrier_arrive\(residual\.consumer_mbar\(\)\);", "", ""),
    "c_counts_where_beta_is_0": one(
        "matrix", "factor/beta_0", r"has_residual = beta != 0\.f", "has_residual = true", ""),
    "the_bias_of_up_is_that_of_gate": one(
        "bias", TILE, r"from \+ kRowPieceBytes \+ place", "from + place"),
    "columns_of_c_are_exchanged": one(
        "matrix", "residual/positions", r"unpack_low\(c_of_8\.x\)", "unpack_high(c_of_8.x)"),
    "elements_are_cut": one(
        "plain", TILE, r"values\[0\] \* factor",
        "__uint_as_float(__float_as_uint(values[0] * factor) & 0xfff00000u)"),
    "elements_of_a_word_are_exchanged": one(
        "plain", TILE, r"values\[0\] \* factor, values\[1\]",
        "values[1] * factor, values[0]"),
}  # fmt: skip
ALWAYS = (
    "amax_of_half_of_the_columns",
    "zeros_have_no_scale",
    "an_infinity_is_larger_than_its_amax",
    "columns_past_the_end_count",
    "the_scale_of_the_next_block",
    "scales_of_rows_past_the_end",
    "a_byte_is_rounded_down",
    "a_product_with_the_reciprocal",
)
"""Made in every run; all of them with --many-seeds."""


COMMON: Keys = {"arch": "sm_100a", "dtype": "bf16", "BN": 128, "cta_group": 1}


def variant(keys: Keys) -> Kernel:
    return product({**COMMON, **keys})


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS
    cases = ("quantised/*", "tile/*", "batch/shared", "depth/0")


def run(kernel: Kernel) -> tuple[Any, Any]:
    """Return the memory of a case with sums that are exact, and the buffers after the kernel."""
    case = GemmCase("own/counting", 130, 200, 136, alpha=0.7, data=COUNTING)
    memory: Any = family_of(kernel.plan).draw(case, 3).memory
    return memory, EmulatedKernel(kernel.plan, program_of(ptx_of(kernel))).run(memory)


@pytest.mark.compile
@pytest.mark.parametrize("output", [BLOCKS, BYTES, MXFP8], ids=str)
@pytest.mark.parametrize(
    "more", [{}, {"activation": "gelu(x)"}, {"residual": "matrix"}, {"residual": "row"}], ids=str
)
def test_the_output_is_quantize_of_the_float32_output(output: Keys, more: Keys) -> None:
    """To the bit: by a kernel that differs in the output, and in the type of C, alone."""
    memory, after = run(variant({**more, "out_dtype": "fp32"}))
    scale = output.get("output_scale_dtype")
    wanted = quantize(read_out(memory, after), output["output_scales"], scale=scale)
    memory, after = run(variant({**output, **more}))
    assert np.array_equal(read_bits(memory, after, "out"), wanted.elements)
    found = read_bits(memory, after, "out_scales")
    assert np.array_equal(found, wanted.scales.view(found.dtype))


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = ALWAYS

    def kernel(self, config: str) -> Kernel:
        return variant(CONFIGS[config])
