"""Rounding to the kernels' element types, and the roundings of a kernel.

Values are float32 arrays throughout; those of bf16, fp16 and fp8 are exact in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from fa4gen.errors import ConfigError, Problem
from fa4gen.scales.narrow import ELEMENTS, decode, encode, pack_pairs, unpack_pairs
from fa4gen.verify.cut_sums import CutSums

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fa4gen.designs.common.attention_model import AttentionPlan

UNIT_ROUNDOFF = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp8_e4m3": 2.0**-4, "fp4_e2m1": 2.0**-2}
NARROW = ("fp8_e5m2", "fp4_e2m1")
"""Types that ``fa4gen.scales`` rounds to."""
"""Largest relative error of rounding a normal number to nearest."""
LARGEST = {
    "bf16": float.fromhex("0x1.fep127"),
    "fp16": 65504.0,
    "fp8_e4m3": 448.0,
    "fp8_e5m2": 57344.0,
    "fp4_e2m1": 6.0,
}
POISON_BITS = {"bf16": 0x7FA5, "fp16": 0x7DA5, "fp32": 0x7FA5A5A5, "fp8_e4m3": 0xFF} | {
    "int32": 0x7FA5A5A5,
    "ue8m0": 0xFF,
    "ue4m3": 0xFF,
    "fp8_e5m2": 0x7F,
    "fp4_e2m1": 0x77,
}
"""A signalling NaN of each type that outputs have: arithmetic makes quiet ones only, so an output
element that still holds these bits was never written. Of the two NaN of fp8_e4m3 conversions make
the positive one, and scales of ue4m3 have no sign; ue8m0 has a single NaN; a length or place of
int32 is far too large; fp4 has its largest number, twice, which a kernel may write as well."""
WITHOUT_NAN = ("fp4_e2m1",)
"""Types of outputs in which an element that was not written shows only by being wrong."""
TIED_ABOVE = 68
"""The logits above which rows share a maximum: kLowest and the threshold of rescaling, see
``tied_rows.cuh.j2``."""
EXP2_POLYNOMIAL_ERROR = 8.8e-5
"""Largest relative error of the cubic polynomial by which some kernels compute part of 2^x."""


@dataclass(frozen=True)
class Precision:
    """The roundings of one kernel."""

    dtype: str
    """The type of the factors, such as the probabilities when they are multiplied by values."""
    out_dtype: str
    rescale_threshold: float = 0.0
    """Powers of two by which the subtracted maximum may be below the true one."""
    probability_shift: int = 0
    """Probabilities are scaled by 2 to this power before they are rounded."""
    exp2_error: float = 0.0
    """Relative error of a probability before it is rounded, where it is more than float32's."""
    maximum_above: int = 0
    """Powers of two by which the subtracted maximum may be above the true one."""
    sums: CutSums | None = None
    """The tensor cores' sums, where they keep fewer bits than float32."""
    zero_scale_log2: int | None = None
    """See ``AttentionPlan``: how a scale of values of 0 counts in a row's maximum."""

    @classmethod
    def of(cls, plan: AttentionPlan) -> Precision:
        """Return the roundings of the kernel of ``plan``."""
        error = EXP2_POLYNOMIAL_ERROR if plan.exp2_fma_share else 0.0
        shift = plan.probability_shift
        above = TIED_ABOVE if plan.ties_rows else 0
        return cls(
            plan.operand_dtype, plan.out_dtype, plan.rescale_threshold, shift, error, above,
            CutSums.of(plan), plan.zero_scale_log2,
        )  # fmt: skip


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """NumPy's type for a word of a config, or "int32"; ConfigError for others."""
    known: dict[str, Any] = {
        "bf16": ml_dtypes.bfloat16,
        "fp16": np.float16,
        "fp8_e4m3": ml_dtypes.float8_e4m3fn,
        "fp32": np.float32,
        "int32": np.int32,
        "ue8m0": ml_dtypes.float8_e8m0fnu,
        "ue4m3": ml_dtypes.float8_e4m3fn,
        "fp8_e5m2": ml_dtypes.float8_e5m2,
        "fp4_e2m1": np.uint8,  # two a byte
        "uint32": np.uint32,
    }
    if dtype not in known:
        raise ConfigError(
            Problem(f"verify knows the types {', '.join(known)}, not {dtype}", key="dtype")
        )
    found: np.dtype[Any] = np.dtype(known[dtype])
    return found


def bits_dtype(dtype: str) -> np.dtype[Any]:
    """NumPy's unsigned integers as wide as an element of ``dtype``."""
    return np.dtype(f"u{numpy_dtype(dtype).itemsize}")


def to_bits(values: NDArray[np.float32], dtype: str) -> NDArray[Any]:
    """Round float32 ``values`` to nearest even; return the bit patterns."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.ascontiguousarray(values)
        if dtype == "fp8_e4m3":  # it has no infinity: larger numbers become the largest
            rounded = np.clip(rounded, -LARGEST[dtype], LARGEST[dtype])
        return rounded.astype(numpy_dtype(dtype)).view(bits_dtype(dtype))


def stored_bits(values: NDArray[np.float32], dtype: str, contiguous: int = -1) -> NDArray[Any]:
    """Return the elements in memory; those that share bytes do so along the contiguous axis."""
    if dtype == "fp4_e2m1":
        patterns = encode(np.moveaxis(values, contiguous, -1), ELEMENTS[dtype])
        packed: NDArray[Any] = np.moveaxis(pack_pairs(patterns), -1, contiguous)
        return packed
    with np.errstate(invalid="ignore"):
        return to_bits(values, dtype)


def narrow_values(bits: Any, dtype: str, contiguous: int = -1, xp: Any = np) -> Any:
    """Return the float32 values of elements of 4 or 8 bits in memory, as ``stored_bits`` packs."""
    if ELEMENTS[dtype].bits == 4:
        bits = unpack_pairs(xp.moveaxis(bits, contiguous, -1), xp)
        bits = xp.moveaxis(bits, -1, contiguous)
    return decode(bits, ELEMENTS[dtype], xp)


def from_bits(bits: NDArray[Any], dtype: str) -> NDArray[np.float32]:
    """Return the float32 values of bit patterns."""
    with np.errstate(invalid="ignore"):  # signalling NaNs become quiet ones
        return np.ascontiguousarray(bits).view(numpy_dtype(dtype)).astype(np.float32)


def round_to(values: Any, dtype: str, xp: Any = np) -> Any:
    """Round float32 ``values``, finite ones, to ``dtype``; the result is float32 again.

    Larger numbers become infinity; for fp8, which has none, the largest number.
    ``xp`` is the array module of ``values``: numpy or cupy.
    """
    if dtype == "fp16":
        return _round_to_fp16(values, xp)
    if dtype in NARROW:
        return decode(encode(values, ELEMENTS[dtype], xp), ELEMENTS[dtype], xp)
    if dtype == "fp8_e4m3":
        rounded = _round_by_adding(values, 3, 2.0**-6, 2.0**9, xp)
        return xp.clip(rounded, np.float32(-LARGEST[dtype]), np.float32(LARGEST[dtype]))
    if xp is np:
        with np.errstate(over="ignore", under="ignore"):
            return values.astype(numpy_dtype(dtype)).astype(np.float32)
    bits = xp.ascontiguousarray(values).view(xp.uint32)
    rounded = bits + (0x7FFF + ((bits >> 16) & 1))
    return (rounded & 0xFFFF0000).view(xp.float32)


def _round_to_fp16(values: Any, xp: Any) -> Any:
    rounded = _round_by_adding(values, 10, 2.0**-14, 2.0**16, xp)
    if rounded.size and float(xp.abs(rounded).max()) > LARGEST["fp16"]:
        too_large = xp.abs(rounded) > LARGEST["fp16"]
        rounded[too_large] = xp.copysign(xp.inf, rounded[too_large])
    return rounded


def _round_by_adding(
    values: Any, mantissa_bits: int, smallest_normal: float, beyond: float, xp: Any
) -> Any:
    """Round by adding and subtracting 1.5 * 2^(23 - bits) times each value's own power of two.

    The sum has no bits left below the last one of the type, subnormals included; ``beyond`` is the
    first power of two that the type does not hold. NumPy's cast takes a hundred times as long on
    the tiny probabilities that this is mostly called for.
    """
    values = xp.ascontiguousarray(values)
    power = (values.view(xp.uint32) & np.uint32(0x7F800000)).view(xp.float32)
    magic = xp.clip(power, np.float32(smallest_normal), np.float32(beyond))
    magic *= np.float32(1.5 * 2 ** (23 - mantissa_bits))
    rounded = values + magic
    rounded -= magic
    return rounded
