"""Outputs of nvfp4 on Blackwell: quantize to the bit, A of the next product; mutants are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest

from fa4gen.scales import arrange, dequantize, quantize, restore
from fa4gen.scales.quantize import Quantized
from fa4gen.verify.cases import COUNTING
from fa4gen.verify.emulator import EmulatedKernel
from fa4gen.verify.family import family_of
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.gemm.memory import read_bits, read_out
from tests.kernels.gemm.reported import MutantTests, ReportedMutant, VariantTests, one, product
from tests.kernels.source_mutation import Kernel, program_of, ptx_of

Keys = dict[str, Any]
ARRANGED: Final = {"output_scale_order": "arranged"}
NVFP4_IN: Final = {"dtype": "fp4_e2m1", "scales": "nvfp4"}
COMMON: Final[Keys] = {
    "arch": "sm_100a", "dtype": "bf16", "BN": 128, "cta_group": 1, "output_scales": "nvfp4",
}  # fmt: skip
VARIANTS: Final[dict[str, Keys]] = {
    "256 columns, a pair, silu": {"BN": 256, "cta_group": 2, "activation": "silu(x)"},
    "nvfp4 in and out, arranged": {**NVFP4_IN, **ARRANGED, "cta_group": 2},
    "gated, arranged": {**ARRANGED, "BN": 256, "activation": "silu(gate) * up"},
    "gated, interleaved, bias": {"BN": 256, "activation": "gelu(gate) * up", "residual": "row",
                                 "gate_layout": "interleaved"},
    "matrix, a pair, arranged": {**ARRANGED, "residual": "matrix", "cta_group": 2,
                                 "dtype": "fp16"},
    "column, dynamic": {"residual": "column", "scheduler": "dynamic", "activation": "exp(x)"},
    "groups, arranged": {**ARRANGED, "groups": "offsets", "cta_group": 2},
    "masked groups, mxfp8 in": {"groups": "masked", "dtype": "fp8_e4m3", "scales": "mxfp8"},
}  # fmt: skip
CONFIGS: Final[dict[str, Keys]] = {
    "plain": {},
    "exp": {"activation": "exp(x)"},
    "atoms": {**ARRANGED, "cta_group": 2, "BN": 256},
    "matrix": {"residual": "matrix"},
}
TILE: Final = "tile/128x128x64"
MUTANTS: Final[dict[str, ReportedMutant]] = {
    "the_scale_of_the_next_block": one(
        "plain", TILE, r"column \+ first \+ block, written\)",
        "(column + first + block) ^ 16, written)"),
    "the_scale_of_the_next_row": one(
        "plain", TILE, r"store\(tile\.batch, row, column", "store(tile.batch, row ^ 1, column"),
    "elements_of_a_byte_are_exchanged": one(
        "plain", TILE, r"e2m1x2\.f32 a, %2, %1;", "e2m1x2.f32 a, %1, %2;"),
    "bytes_of_a_word_are_exchanged": one(
        "plain", TILE, r"\{a, b, c, d\}", "{b, a, c, d}"),
    "the_factor_of_the_other_block": one(
        "plain", TILE, r"values \+ 16, factors\[1\]", "values + 16, factors[0]"),
    "the_amax_of_the_first_block_alone": one(
        "plain", TILE, r"j = block; j < block \+ kScaledColumns; \+\+j\) \{\s+amax = max_or_nan",
        "j = 0; j < kScaledColumns; ++j) { amax = max_or_nan"),
    "amax_of_half_of_a_block": one(
        "plain", TILE, r"j < block \+ kScaledColumns; \+\+j\) \{\s+amax = max_or_nan",
        "j < block + kScaledColumns / 2; ++j) { amax = max_or_nan"),
    "the_scale_of_the_tensor_is_forgotten": one(
        "plain", TILE, r"divide\(1\.f, \*out_scales\.tensor_scale\)", "1.f"),
    "the_scale_of_the_tensor_is_not_inverted": one(
        "plain", TILE, r"divide\(1\.f, \*out_scales\.tensor_scale\)", "*out_scales.tensor_scale"),
    "a_scale_past_the_largest_is_none": one(
        "plain", "quantised/infinite", r"return pack_e4m3_pair\(x, 0\.f\);",
        "return x > 448.f ? 0x7f : pack_e4m3_pair(x, 0.f);"),
    "a_scale_may_be_zero": one(
        "plain", "quantised/apart", r"fmaxf\((divide\(amax, kLargestElement\) \* per_tensor), "
        r"kLeastScale\)", r"\1"),
    "zeros_have_no_scale": one(
        "plain", "depth/0", r"fmaxf\(fminf\(amax, kLargestFloat\), kLeastAmax\)",
        "fminf(amax, kLargestFloat)"),
    "an_infinity_is_the_amax": one(
        "plain", "quantised/infinite", r"fminf\(amax, kLargestFloat\)",
        "fminf(amax, kLargestFloat / 4096)"),
    "no_scale_is_nan": one(
        "plain", "quantised/nan", r"has_nan \? kNanScale : scale", "scale"),
    "a_block_with_nan_has_the_scale_of_zeros": one(
        "plain", "quantised/nan", r"const bool has_nan = amax != amax;",
        "const bool has_nan = false;"),
    "columns_past_the_end_count": one(
        "exp", "tile/127x129x63", r"if \(problem\.n - column < kOutPanel\)", "if (false)"),
    "scales_of_rows_past_the_end": one(
        "plain", "tile/127x129x63", r"row < problem\.m && ", "", ""),
    "scales_of_blocks_past_the_end": one(
        "plain", "tile/127x129x63", r" && column \+ first \+ block < problem\.n", "", ""),
    "every_step_is_the_first": one(
        "atoms", "tile/257x255x65", r"\) / kOutElementsPerByte, tile", ") * 0, tile", ""),
    "the_second_atom_has_the_scales_of_the_first": one(
        "atoms", "tile/257x255x65", r"column \+ 64, words\[1\]", "column + 64, words[0]"),
    "the_second_atom_is_not_written": one(
        "atoms", "tile/257x255x65", r"column \+ 64 < problem\.n", "false", ""),
    "bytes_of_an_atom_are_exchanged": one(
        "atoms", "tile/257x255x65", r"kScaledColumns % 4 \* 8", "kScaledColumns % 4 * 8 ^ 8"),
    "an_atom_past_the_blocks_is_written": one(
        "atoms", "size/33x24x40", r" && column \+ 64 < problem\.n", "", ""),
    "chunks_are_swizzled_as_those_of_c": one(
        "matrix", TILE, r"\(\(i \^ row / 2 % 4\) << 4\)", "((i ^ row % 4) << 4)"),
    "both_panels_of_c_are_the_first": one(
        "matrix", "residual/positions", r"i / 8 \* kCPanelBytes \+ ", ""),
}  # fmt: skip
ALWAYS = (
    "the_scale_of_the_next_block",
    "elements_of_a_byte_are_exchanged",
    "the_factor_of_the_other_block",
    "the_scale_of_the_tensor_is_forgotten",
    "a_scale_past_the_largest_is_none",
    "columns_past_the_end_count",
    "no_scale_is_nan",
    "the_second_atom_has_the_scales_of_the_first",
)
"""Made in every run; all of them with --many-seeds."""
VALUES: Final = np.array([0.0, 0.25, 0.5, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, 7.0], np.float32)
"""Numbers of e2m1 with a scale of 1, all ties between two of them, and 7, which is beyond."""


class TestVariants(VariantTests):
    common = COMMON
    variants = VARIANTS
    cases = ("quantised/*", "tile/*", "batch/shared", "depth/0")


class TestMutants(MutantTests):
    configs = CONFIGS
    mutants = MUTANTS
    always = ALWAYS

    def kernel(self, config: str) -> Kernel:
        return variant(CONFIGS[config])


def variant(keys: Keys) -> Kernel:
    return product({**COMMON, **keys})


def emulated(kernel: Kernel, memory: Any) -> Any:
    return EmulatedKernel(kernel.plan, program_of(ptx_of(kernel))).run(memory)


def drawn(kernel: Kernel, *extents: int, **more: Any) -> Any:
    """Return the memory of a case of m, n and k."""
    case = GemmCase("own", *extents, **more)
    return family_of(kernel.plan).draw(case, 3).memory


def put(memory: Any, name: str, bits: Any) -> None:
    memory.views[name].bits(memory.buffers[name])[...] = bits


def result(memory: Any, after: Any, *, arranged: bool) -> Quantized:
    """Return a kernel's output as ``quantize`` returns one, with scales row by row."""
    elements = read_bits(memory, after, "out")[0]
    view = memory.views["out_scales"]
    scales = view.bits(after[view.buffer])
    if arranged:
        scales = restore(scales, elements.shape[0], elements.shape[1] // 8)
    form = quantize(np.zeros((1, 16), np.float32), "nvfp4").form
    return Quantized(form, elements, scales, memory.tensor_scale)


def assert_same(found: Quantized, wanted: Quantized) -> None:
    assert np.array_equal(found.scales, wanted.scales)
    assert np.array_equal(found.elements, wanted.elements)


@pytest.mark.compile
@pytest.mark.parametrize(
    ("more", "data"),
    [
        ({}, COUNTING),
        ({}, "scaled"),
        (ARRANGED, "normal"),
        ({"activation": "gelu(x)"}, "normal"),
        ({"residual": "matrix"}, COUNTING),  # the other C is float32: its numbers are whole
        ({"BN": 256, "activation": "silu(gate) * up"}, "normal"),
    ],
    ids=str,
)
def test_the_output_is_quantize_of_the_float32_output(more: Keys, data: str) -> None:
    """To the bit: by a kernel that differs in the output, and in the type of C, alone."""
    exact = {**more, "output_scales": None, "output_scale_order": "row_major", "out_dtype": "fp32"}
    memory = drawn(variant(exact), 130, 208, 136, alpha=0.7, data=data)
    plain = read_out(memory, emulated(variant(exact), memory))[0]
    kernel = variant(more)
    memory = drawn(kernel, 130, 208, 136, alpha=0.7, data=data)
    found = result(memory, emulated(kernel, memory), arranged=more is ARRANGED)
    assert_same(found, quantize(plain, "nvfp4", tensor_scale=memory.tensor_scale))


@pytest.mark.compile
@pytest.mark.parametrize("tensor_scale", [1.0, 2.0**-7, 0.3, 1.7e30, 2.0**-111])
def test_numbers_are_rounded_as_quantize_rounds_them(tensor_scale: float) -> None:
    """Ties of elements and of scales, all powers of two, zeros, infinities and NaN, as C alone."""
    kernel = variant({"residual": "matrix"})
    memory = drawn(kernel, 128, 256, 16)
    rng = np.random.default_rng(5)
    c = rng.integers(0, 1 << 16, (128, 256)).astype(np.uint16)  # NaN of all patterns among them
    numbers = c.view(ml_dtypes.bfloat16)
    numbers[:32] = rng.choice(VALUES, (32, 256)) * rng.choice((-1.0, 1.0), (32, 256))
    numbers[:32, ::16] = 6.0
    numbers[16:32] *= np.exp2(rng.integers(-12, 12, (16, 1)))  # scales that are no normal numbers
    numbers[32:64] = rng.standard_normal((32, 256)) * np.exp2(rng.integers(-90, 90, (32, 1)))
    numbers[32:40, ::16] = 6.0 * np.exp2(rng.integers(-8, 8, (8, 16))) * 1.0625  # ties of scales
    numbers[40], numbers[41, 7], numbers[42, 3:9] = 0.0, np.inf, -np.inf
    numbers[43, 16:32], numbers[44, 5] = np.nan, np.nan
    with np.errstate(over="ignore"):
        numbers[:64] = numbers[:64] * ml_dtypes.bfloat16(tensor_scale)
    memory = replace(memory, alpha=1.0, beta=1.0, tensor_scale=float(np.float32(tensor_scale)))
    for name in ("a", "b"):
        put(memory, name, 0)
    put(memory, "c", c)
    put(memory, "out_tensor_scale", np.array([tensor_scale], np.float32).view(np.uint32))
    found = result(memory, emulated(kernel, memory), arranged=False)
    with np.errstate(invalid="ignore", over="ignore"):
        values = numbers.astype(np.float32) + np.float32(0.0)  # alpha * 0 + C: no zero is negative
        wanted = quantize(values, "nvfp4", tensor_scale=memory.tensor_scale)
    assert_same(found, wanted)
    least = 0x01 if tensor_scale > 2.0**-100 else found.scales.min()  # an amax is 2^-100 or more
    assert {least, 0x7E, 0x7F} <= set(np.unique(found.scales))


@pytest.mark.compile
@pytest.mark.parametrize("order", ["arranged", "row_major"])
@pytest.mark.parametrize("gate", [{}, {"BN": 256, "activation": "silu(gate) * up"}], ids=str)
def test_the_next_product_takes_the_output_as_its_a(order: str, gate: Keys) -> None:
    """Unchanged: its memory, its strides and its scales, with the tensor's scale in alpha."""
    m, k, n = 140, 256 if gate else 224, 136
    first = variant({**gate, **NVFP4_IN, "output_scale_order": order})
    second = product({"arch": "sm_100a", **NVFP4_IN, "scale_order": order, "out_dtype": "fp32"})
    before = drawn(first, m, k, 96)
    after = emulated(first, before)
    hidden = result(before, after, arranged=order == "arranged")
    memory = drawn(second, m, n, k)
    passed = {"a": "out", "scale_a": "out_scales"}
    views = {name: replace(before.views[of], buffer=name) for name, of in passed.items()}
    buffers = {name: after[of] for name, of in passed.items()}
    weight = quantize(np.random.default_rng(2).standard_normal((n, k)).astype(np.float32), "nvfp4")
    memory = replace(
        memory,
        views={**memory.views, **views},
        buffers={**memory.buffers, **buffers},
        alpha=float(np.float32(hidden.tensor_scale * weight.tensor_scale)),
    )
    put(memory, "b", weight.elements.T)
    put(memory, "scale_b", arrange(weight.scales) if order == "arranged" else weight.scales.T)
    found = read_out(memory, emulated(second, memory))[0]
    a, b = (dequantize(one).astype(np.float64) for one in (hidden, weight))
    wanted = a @ b.T
    assert np.linalg.norm(wanted) > 0
    assert np.linalg.norm(found - wanted) < 1e-6 * np.linalg.norm(wanted)
