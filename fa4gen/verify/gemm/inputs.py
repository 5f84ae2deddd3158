"""The inputs of a matrix product: drawn from a seed, rounded to its element types.

Every kind of data has a name (``KINDS``); a kind is chosen to strain one part of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.verify.gemm.input_kinds import KINDS, Draft
from fa4gen.verify.gemm.scales import draw_scales
from fa4gen.verify.rounding import round_to

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.gemm.cases import GemmCase

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class GemmInputs:
    """Values of the element types as float32; without a batch where the case shares a tensor.

    ``a`` is (batch, m, k), ``b`` (batch, k, n), ``c`` (batch, m, n), without axes that it
    lacks, or None. ``alpha`` and ``beta`` are numbers of float32.
    """

    a: Floats
    b: Floats
    c: Floats | None
    alpha: float
    beta: float
    scales: tuple[Floats, ...] = ()
    """Those of the plan's scales, in its order, with the axes of the arguments."""


def make_inputs(case: GemmCase, plan: GemmPlan, rng: np.random.Generator) -> GemmInputs:
    """Draw the inputs of ``case`` for the kernel of ``plan``."""
    batch = 1 if case.batch is None else case.batch
    shapes: dict[str, tuple[int, ...]] = {
        "a": (batch, case.m, case.k),
        "b": (batch, case.k, case.n),
    }
    shapes["c"] = (batch, *plan.c.extents(case.m, case.n))
    for name in case.shared:
        shapes[name] = (1, *shapes[name][1:])
    a, b, c = (rng.standard_normal(shapes[name], dtype=np.float32) for name in ("a", "b", "c"))
    steep = plan.activation is not None
    draft = Draft(rng, plan.dtype, plan.b_dtype, plan.out_dtype, a, b, c, case.alpha, steep)
    if steep:  # sums of a few units, where activations are not linear
        draft.alpha *= 2.0 ** round(1 - np.log2(max(case.k, 1)) / 2)
    KINDS[case.data](draft)
    draft.clip()
    scales = draw_scales(case, plan, rng)
    if case.nan_in_c:
        draft.c[:] = np.nan
    if case.alpha == 0:  # neither is read
        draft.a[:], draft.b[:] = np.nan, np.nan
        scales = tuple(np.full_like(one, np.nan) for one in scales)
    return GemmInputs(
        _rounded(draft.a, plan.dtype),
        _rounded(draft.b, plan.b_dtype),
        _rounded(draft.c, plan.out_dtype) if plan.c.exists else None,
        float(np.float32(draft.alpha)),
        float(np.float32(case.beta)),
        scales,
    )


def _rounded(values: Floats, dtype: str) -> Floats:
    if dtype == "fp32" or np.isnan(values).any():
        return values
    rounded: Floats = round_to(values, dtype)
    return rounded
