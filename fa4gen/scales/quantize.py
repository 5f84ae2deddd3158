"""Quantising to narrow floats with a scale for each block, in NumPy, CuPy or torch.

Every array module gives the same bits: only additions, multiplications, divisions and comparisons
of float32 are used, each rounded to nearest even. A block's scale follows from its amax, the
largest magnitude of its numbers. NaN does not count, an infinity counts as the largest float32, and
amax is at least 2^-100, so that blocks of zeros have a scale, too.

    scale              elements are rounded from
    fp32   amax / largest                          x * (largest / amax)
    ue8m0  amax / largest up to a power of two     x / scale, which is exact
    ue4m3  amax / largest / tensor_scale rounded   x * ((1 / tensor_scale) / scale)

``largest`` is that of the element type: 448, 57344 or 6. The scale of a tensor is its amax divided
by 448 * 6. A NaN stays one in fp8; fp4 has none, and the scale of its block is NaN instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.errors import ArgumentError, Problem
from fa4gen.scales.backends import backend_of
from fa4gen.scales.forms import ScaleForm, form_of
from fa4gen.scales.narrow import ELEMENTS, FLOAT_MANTISSA, decode, encode, pack_pairs, unpack_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST_AMAX = 2.0**-100
LARGEST_FLOAT = float(np.finfo(np.float32).max)
UE8M0_BIAS, UE8M0_NAN = 127, 0xFF
SMALLEST_UE8M0 = 0x00400000
"""The bits of 2^-127 in float32, a subnormal number."""
SCALE_NAN: Mapping[str, int] = {"ue8m0": UE8M0_NAN, "ue4m3": 0x7F}
_E4M3 = ELEMENTS["fp8_e4m3"]
_SMALLEST_UE4M3 = 2.0**-9


@dataclass(frozen=True)
class Quantized:
    """Elements and scales, arrays of the module that was given."""

    form: ScaleForm
    elements: Any
    """(..., rows, k), uint8 patterns; of fp4 (..., rows, k / 2), two a byte, even columns low."""
    scales: Any
    """(..., rows / block rows, k / block columns), rounded up: float32, or uint8 patterns."""
    tensor_scale: float = 1.0
    """Multiplies every element with its scale; goes into a product's ``alpha``."""


def quantize(
    x: Any,
    form: str,
    *,
    element: str | None = None,
    scale: str | None = None,
    tensor_scale: float | None = None,
) -> Quantized:
    """Quantise ``x``, (..., rows, k) of float32, float16 or bfloat16.

    ``form``: "1x128", "128x128", "mxfp8", "mxfp4" or "nvfp4". ``element`` may be "fp8_e5m2" for the
    forms of fp8; ``scale`` may be "ue8m0" for the first two. ``tensor_scale`` replaces the one that
    nvfp4 computes from ``x``. Raises ArgumentError for what a form does not have, fewer than two
    axes, and odd k with fp4.
    """
    wanted = form_of(form, element=element, scale=scale)
    backend = backend_of(x)
    xp = backend.xp
    values = backend.as_float32(x)
    _check(values, wanted, tensor_scale)
    kind = ELEMENTS[wanted.element]
    whole = xp.minimum(xp.abs(values), np.float32(LARGEST_FLOAT))
    is_nan = xp.isnan(values)
    sizes = xp.where(is_nan, np.float32(0), whole)
    values = xp.clip(values, np.float32(-LARGEST_FLOAT), np.float32(LARGEST_FLOAT))
    amax = xp.maximum(by_block(sizes, wanted, xp), np.float32(LEAST_AMAX))
    of_tensor = np.float32(1.0)
    if wanted.has_tensor_scale:
        largest = float(xp.max(amax)) if amax.size else LEAST_AMAX
        of_tensor = np.float32(largest) / np.float32(_E4M3.largest * kind.largest)
        if tensor_scale is not None:
            of_tensor = np.float32(tensor_scale)
    scales, factors = scales_of_amax(amax, wanted, of_tensor, xp)
    patterns = encode(values * to_elements(factors, values.shape, wanted, xp), kind, xp)
    if kind.bits == 4:
        hidden = by_block(is_nan.astype(xp.float32), wanted, xp) > 0
        scales = xp.where(hidden, np.uint8(SCALE_NAN[wanted.scale]), scales).astype(xp.uint8)
        patterns = pack_pairs(patterns)
    return Quantized(wanted, backend.back(patterns), backend.back(scales), float(of_tensor))


def dequantize(quantized: Quantized) -> Any:
    """Return the float32 numbers that elements and scales stand for, (..., rows, k).

    What is larger than any float32 is an infinity.
    """
    form, backend = quantized.form, backend_of(quantized.elements)
    xp, kind = backend.xp, ELEMENTS[quantized.form.element]
    patterns = backend.array(quantized.elements)
    if kind.bits == 4:
        patterns = unpack_pairs(patterns, xp)
    numbers = decode(patterns, kind, xp)
    scales = scale_values(backend.array(quantized.scales), form, xp)
    scales = scales * np.float32(quantized.tensor_scale)
    with np.errstate(over="ignore"):
        return backend.back(numbers * to_elements(scales, numbers.shape, form, xp))


def as_mxfp8(quantized: Quantized) -> Quantized:
    """Return the same numbers with a scale for each 32 of a row, as Blackwell's products read them.

    For fp8 in blocks of 1x128 or 128x128 with scales of ue8m0, whose elements stay as they are.
    Raises ArgumentError for other forms.
    """
    form = quantized.form
    if ELEMENTS[form.element].bits != 8 or form.scale != "ue8m0":
        raise ArgumentError(
            Problem(
                f"quantized: expected fp8 with scales of ue8m0, got {form.element} in {form.name} "
                f"with scales of {form.scale}",
                'Quantise with scale="ue8m0".',
            )
        )
    wanted = form_of("mxfp8", element=form.element)
    backend = backend_of(quantized.scales)
    rows, k = quantized.elements.shape[-2:]
    each = backend.xp.repeat(backend.array(quantized.scales), form.rows, axis=-2)
    each = backend.xp.repeat(each, form.columns // wanted.columns, axis=-1)
    scales = backend.xp.ascontiguousarray(each[..., :rows, : -(-k // wanted.columns)])
    return replace(quantized, form=wanted, scales=backend.back(scales))


def scale_values(scales: Any, form: ScaleForm, xp: Any = np) -> Any:
    """Return scales as float32 numbers."""
    if form.scale == "fp32":
        return scales
    if form.scale == "ue4m3":
        return decode(scales, _E4M3, xp)
    code = scales.astype(xp.uint32)
    powers = xp.where(code == 0, np.uint32(SMALLEST_UE8M0), code << np.uint32(FLOAT_MANTISSA))
    return xp.where(scales == UE8M0_NAN, np.float32(np.nan), powers.view(xp.float32))


def scales_of_amax(
    amax: Any, form: ScaleForm, of_tensor: np.float32, xp: Any = np
) -> tuple[Any, Any]:
    """Return the scales of blocks, and by what their elements are multiplied before rounding."""
    largest = np.float32(ELEMENTS[form.element].largest)
    if form.scale == "fp32":
        return amax / largest, largest / amax
    if form.scale == "ue8m0":
        up = (amax / largest).view(xp.uint32) + np.uint32((1 << FLOAT_MANTISSA) - 1)
        code = up >> np.uint32(FLOAT_MANTISSA)
        inverse = (np.uint32(2 * UE8M0_BIAS) - code) << np.uint32(FLOAT_MANTISSA)
        return code.astype(xp.uint8), inverse.view(xp.float32)
    per_tensor = np.float32(1.0) / of_tensor
    wanted = xp.maximum(amax / largest * per_tensor, np.float32(_SMALLEST_UE4M3))
    patterns = encode(wanted, _E4M3, xp)
    return patterns, per_tensor / decode(patterns, _E4M3, xp)


def by_block(sizes: Any, form: ScaleForm, xp: Any) -> Any:
    """Return the largest of ``sizes``, which are not negative, in each block."""
    rows, columns = sizes.shape[-2:]
    more = (-rows % form.rows, -columns % form.columns)
    widths = [(0, 0)] * (sizes.ndim - 2) + [(0, one) for one in more]
    padded = xp.pad(sizes, widths) if any(more) else sizes
    shape = (
        *padded.shape[:-2],
        padded.shape[-2] // form.rows,
        form.rows,
        padded.shape[-1] // form.columns,
        form.columns,
    )
    return padded.reshape(shape).max(axis=(-3, -1))


def to_elements(blocks: Any, shape: tuple[int, ...], form: ScaleForm, xp: Any) -> Any:
    """Return the number of its block for each element."""
    rows, columns = shape[-2:]
    each = xp.repeat(xp.repeat(blocks, form.rows, axis=-2), form.columns, axis=-1)
    return each[..., :rows, :columns]


def _check(values: Any, form: ScaleForm, tensor_scale: float | None) -> None:
    problems = []
    if values.ndim < 2:
        problems.append(f"x: expected (..., rows, k), got shape {tuple(values.shape)}")
    elif ELEMENTS[form.element].bits == 4 and values.shape[-1] % 2:
        problems.append(f"x: {form.name} packs two elements a byte, and k is {values.shape[-1]}")
    if tensor_scale is not None and not form.has_tensor_scale:
        problems.append(f"tensor_scale: {form.name} has none")
    if tensor_scale is not None and not 0 < tensor_scale < float("inf"):
        problems.append(f"tensor_scale: expected a number above zero, got {tensor_scale}")
    if problems:
        raise ArgumentError(*map(Problem, problems))
