"""The roundings of a kernel, with their types, according to its plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan

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

    @classmethod
    def of(cls, plan: AttentionPlan) -> Precision:
        """Return the roundings of the kernel of ``plan``."""
        error = EXP2_POLYNOMIAL_ERROR if plan.exp2_fma_share else 0.0
        shift = plan.probability_shift
        above = TIED_ABOVE if plan.ties_rows else 0
        return cls(plan.operand_dtype, plan.out_dtype, plan.rescale_threshold, shift, error, above)
