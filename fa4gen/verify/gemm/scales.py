"""Scales of blocks in verify: how they are drawn, and the sums that they are part of.

A kernel adds products of 128 of k by the tensor cores, and then multiplies by both scales and adds
in float32. The product of the scales and each sum are rounded: half a unit of float32 of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.scales import arrange
from fa4gen.scales.quantize import SCALE_NAN
from fa4gen.verify.cases import COUNTING
from fa4gen.verify.gemm.group_cases import operand_shapes
from fa4gen.verify.gemm.tolerance import MANTISSA_BITS, sum_products
from fa4gen.verify.rounding import round_to, to_bits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.designs.common.gemm_scales import OperandScales
    from fa4gen.verify.gemm.case import GemmCase
    from fa4gen.verify.gemm.groups import Groups
    from fa4gen.verify.gemm.tolerance import Accumulation

HALF_UNIT = 2.0**-24
SPREAD = 2.0
"""Scales are powers of two up to this exponent, and down to its negative, times 1 to 2."""
APART = 30
"""Exponents of the scales of neighbouring blocks, of either sign, of data that are apart."""
APART_IN_RANGE = 4
"""Exponents of such data where the output has few of them, or an activation."""
LOWEST_BYTE = -127
"""The lowest exponent of ue8m0, a subnormal number of float32."""
HIGH_BYTE = 118
"""The highest exponent of which float32 holds every product with an element."""
COUNTED_SCALES = (767, 3)
"""The largest whole scales of one operand and of the other: 10 bits, and 12 in their product."""
NAN_SHARE = 0.02


def draw_scales(
    case: GemmCase, plan: GemmPlan, rng: np.random.Generator
) -> tuple[NDArray[np.float32], ...]:
    """Draw the scales of A and B; none for a plan without them."""
    largest = rng.permutation(COUNTED_SCALES)
    return tuple(
        _draw(row, case, plan, rng, int(most))
        for row, most in zip(plan.scales, largest, strict=False)
    )


def _draw(
    scales: OperandScales, case: GemmCase, plan: GemmPlan, rng: np.random.Generator, largest: int
) -> NDArray[np.float32]:
    shapes = operand_shapes(case, plan)
    extents = scales.extents(shapes["a"][1], plan.columns_of_b(case.n), case.k)
    shape = (shapes[scales.operand][0], *(extents[axis] for axis in scales.block_axes[1:]))
    narrow = plan.out_dtype == "fp16" or plan.activation is not None or scales.dtype == "ue4m3"
    if case.data == COUNTING and scales.dtype == "fp32" and not narrow:
        return rng.integers(1, largest, shape, endpoint=True).astype(np.float32)
    if case.data == COUNTING:  # sums stay whole, and small enough to be exact
        steps = 2 if plan.activation is not None else 3  # its arguments stay where it is not flat
        powers = rng.integers(0, steps, shape).astype(np.float64)
    elif case.data == "blocks_apart":
        powers = rng.choice(_ends_apart(scales, APART_IN_RANGE if narrow else APART), shape)
    else:
        powers = rng.uniform(-SPREAD, SPREAD, shape)
    exponents = np.round(powers) if scales.dtype == "ue8m0" else powers
    drawn: NDArray[np.float32] = np.exp2(exponents).astype(np.float32)
    if scales.dtype == "ue4m3":
        drawn = round_to(drawn, "fp8_e4m3")
    if case.data == "nan_scales":
        drawn[rng.random(shape) < NAN_SHARE] = np.nan
    return drawn


def _ends_apart(scales: OperandScales, apart: int) -> tuple[float, float]:
    """Return the two exponents of scales that are ``apart`` from their middle.

    Those in a byte are low for A, from the lowest that there is, and high for B.
    """
    if scales.dtype != "ue8m0":
        return float(-apart), float(apart)
    if scales.operand == "a":
        return float(LOWEST_BYTE), float(LOWEST_BYTE + 2 * apart)
    return float(HIGH_BYTE - 2 * apart), float(HIGH_BYTE)


def scale_bits(
    scales: OperandScales, values: NDArray[np.float32], groups: Groups | None
) -> NDArray[Any]:
    """Return drawn scales as a call takes them: bit patterns, in atoms if it wants those.

    Atoms of rows in groups are filled up with NaN.
    """
    with np.errstate(invalid="ignore"):
        bits = to_bits(values, scales.dtype)
    if not scales.in_atoms:
        return bits
    if scales.operand == "b":
        bits = bits.swapaxes(-1, -2)
    elif groups is not None:
        bits = groups.in_atoms(bits, SCALE_NAN[scales.dtype])
    arranged: NDArray[Any] = arrange(bits)
    return arranged


def of_each_line(scales: OperandScales, values: Any, extent: int, xp: Any) -> Any:
    """Return one scale for each row of A, (..., rows, blocks), or column of B, (..., blocks, n)."""
    axis = -2 if scales.operand == "a" else -1
    each = xp.repeat(values, scales.rows, axis=axis) if scales.rows > 1 else values
    return each[..., :extent, :] if axis == -2 else each[..., :extent]


def scaled(values: Any, scales: Any, axis: int, block: int, xp: Any) -> Any:
    """Return an operand's elements times their scales, ``block`` of them along k on ``axis``.

    ``axis`` is -1 or -2.
    """
    each = xp.repeat(scales, block, axis=axis)
    extent = values.shape[axis]
    return values * (each[..., :extent] if axis == -1 else each[..., :extent, :])


def sum_scaled(
    how: Accumulation, a: Any, b: Any, scales: tuple[Any, Any], block: int, xp: Any = np
) -> tuple[Any, Any]:
    """Return the sum over k of both operands with their scales, in float64, and its error."""
    shape = (a.shape[0], b.shape[1])
    of_a, of_b = (one.astype(xp.float64) for one in scales)
    total, error = (xp.zeros(shape, xp.float64) for _ in range(2))
    for index, start in enumerate(range(0, a.shape[1], block)):
        part = slice(start, start + block)
        products, wrong = sum_products(how, a[:, part], b[part], xp)
        factor = of_a[:, index, None] * of_b[index]
        added = factor * products
        total += added
        error += xp.abs(factor) * wrong + HALF_UNIT * (xp.abs(added) + xp.abs(total) + error)
    if _adds_exactly(a, b, (of_a, of_b), block, xp):
        return total, xp.zeros(shape, xp.float64)
    return total, error


def _adds_exactly(a: Any, b: Any, scales: tuple[Any, Any], block: int, xp: Any) -> bool:
    """Whether operands and scales are whole numbers, with sums that float32 holds."""
    if not all(bool((array == xp.rint(array)).all()) for array in (a, b, *scales)):
        return False
    of_a, of_b = scaled(a, scales[0], -1, block, xp), scaled(b, scales[1], -2, block, xp)
    sizes = xp.abs(of_a) @ xp.abs(of_b)
    return not sizes.size or float(sizes.max()) < 2.0 ** (MANTISSA_BITS - 1)
