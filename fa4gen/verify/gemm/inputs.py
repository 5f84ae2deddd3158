"""The inputs of a matrix product: drawn from a seed, rounded to its element types.

Every kind of data has a name (``KINDS``); a kind is chosen to strain one part of the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.verify.cases import COUNTING
from fa4gen.verify.gemm.group_cases import groups_of, operand_shapes
from fa4gen.verify.gemm.groups import Groups, Part, matrix_parts
from fa4gen.verify.gemm.input_kinds import GROUP_KINDS, KINDS, Draft
from fa4gen.verify.gemm.row_index import draw_index, moved, taken
from fa4gen.verify.gemm.scales import draw_scales
from fa4gen.verify.gemm.scatter import Scatter, draw_scatter
from fa4gen.verify.rounding import round_to

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.gemm.case import GemmCase

Floats = NDArray[np.float32]
NVFP4_LARGEST = 448.0 * 6.0
"""The largest number with a scale of nvfp4, as a multiple of the scale of its tensor."""
TYPICAL_AMAX = 4.0
"""Standard deviations that the amax of a tensor has; also that of an activation, about."""
TENSOR_SCALES = 2.0**-100, 2.0**110
"""The least and the largest scale of a tensor that is drawn."""


@dataclass(frozen=True)
class GemmInputs:
    """Values of the element types as float32; without a batch where the case shares a tensor.

    ``a`` is (batch, m, k), ``b`` (batch, k, n), ``c`` (batch, m, n), without axes that it
    lacks, or None; with a gated activation ``b`` and a row ``c`` have columns of gate and of up.
    ``alpha`` and ``beta`` are numbers of float32.
    """

    a: Floats
    b: Floats
    c: Floats | None
    alpha: float
    beta: float
    scales: tuple[Floats, ...] = ()
    """Those of the plan's scales, in its order, with the axes of the arguments."""
    groups: Groups | None = None
    """The rows of groups, in a kernel that has some: ``batch`` is then theirs in what they do not
    share, and 1 in other operands of offsets."""
    k_groups: Groups | None = None
    """The groups that divide k: A and B are one matrix each, and the output and C have a batch."""
    scatter: Scatter | None = None
    tensor_scale: float = 1.0
    """The scale of a quantised output's tensor, a number of float32."""
    row_index: NDArray[np.int32] | None = None
    """(batch, m), or (1, m) for all, where rows are gathered; ``a`` and its scales then have any
    number of rows, and all groups those of one matrix."""

    @property
    def out_rows(self) -> tuple[int, int]:
        """Matrices of the output, and the rows of each."""
        batch, rows = self.a.shape[:2]
        if self.k_groups is not None:
            return len(self.k_groups.counts), rows
        if self.row_index is None:
            return batch, rows
        matrices = self.row_index.shape[0] if self.groups is not None else batch
        return matrices, self.row_index.shape[1]

    @property
    def stored_rows(self) -> tuple[int, int]:
        """Matrices of the output's tensor, and the rows of each."""
        return self.out_rows if self.scatter is None else (1, self.scatter.rows)

    @property
    def unwritten(self) -> NDArray[np.bool_] | None:
        """A mask of the rows of that tensor that are not written; None where all are."""
        if self.scatter is not None:
            return self.scatter.unnamed
        return None if self.groups is None else self.groups.rows_of_none()

    @property
    def in_order(self) -> GemmInputs:
        """The inputs of the same product with contiguous rows."""
        if self.row_index is None:
            return self
        index = np.broadcast_to(self.row_index, self.out_rows)
        scales = (*(taken(one, index) for one in self.scales[:1]), *self.scales[1:])
        return replace(self, a=taken(self.a, index), scales=scales, row_index=None)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The rows that are multiplied by one B each."""
        if self.groups is not None:
            return tuple(self.groups.parts())
        if self.k_groups is not None:
            return tuple(self.k_groups.depths(self.a.shape[1]))
        return tuple(matrix_parts(*self.out_rows))

    @property
    def result_shape(self) -> tuple[int, int, int]:
        """The extents of the result: with groups, of their rows alone."""
        batch, rows = self.out_rows
        if self.groups is not None:
            batch, rows = 1, sum(self.groups.counts)
        return batch, rows, self.b.shape[2]


def make_inputs(case: GemmCase, plan: GemmPlan, rng: np.random.Generator) -> GemmInputs:
    """Draw the inputs of ``case`` for the kernel of ``plan``."""
    shapes = operand_shapes(case, plan)
    a, b, c = (rng.standard_normal(shapes[name], dtype=np.float32) for name in ("a", "b", "c"))
    steep = plan.activation is not None
    groups, k_groups = groups_of(plan, case), None
    if plan.sums_by_group:
        groups, k_groups = None, groups
    parts = () if groups is None else tuple(groups.parts())
    if k_groups is not None:
        parts = tuple(k_groups.depths(case.m))
    steep_c = steep and not (plan.gated and plan.c.is_matrix)
    types = plan.dtype, plan.b_dtype, plan.c_dtype
    draft = Draft(rng, *types, a, b, c, case.alpha, steep, parts, steep_c)
    if steep:  # sums of a few units, where activations are not linear
        draft.alpha *= 2.0 ** round(1 - np.log2(max(case.k, 1)) / 2)
    KINDS[case.data](draft)
    draft.clip()
    scales = draw_scales(case, plan, rng)
    if case.data == "nan_groups":
        for part in parts[1::2]:
            for row, values in zip(plan.scales, scales, strict=True):
                own = (part.batch, part.rows_of_matrix) if row.operand == "a" else (part.b,)
                values[own] = np.nan
    if groups is not None:
        none = groups.rows_of_none()
        draft.a[none] = np.nan
        if "m" in plan.c.axes:
            draft.c[none] = np.nan
        for row, values in zip(plan.scales, scales, strict=True):
            if row.operand == "a":
                values[none] = np.nan
    if k_groups is not None:
        none = k_groups.rows_of_none()[0]
        draft.a[:, :, none], draft.b[:, none] = np.nan, np.nan
    if case.nan_in_c:
        draft.c[:] = np.nan
    if case.alpha == 0:  # neither is read
        draft.a[:], draft.b[:] = np.nan, np.nan
        scales = tuple(np.full_like(one, np.nan) for one in scales)
    inputs = GemmInputs(
        _rounded(draft.a, plan.dtype),
        _rounded(draft.b, plan.b_dtype),
        _rounded(draft.c, plan.c_dtype) if plan.c.exists else None,
        float(np.float32(draft.alpha)),
        float(np.float32(case.beta)),
        scales,
        groups,
        k_groups,
    )
    if plan.output_scales is not None and plan.output_scales.has_tensor_scale:
        inputs = replace(inputs, tensor_scale=_tensor_scale(inputs, case, plan, rng))
    if plan.scatters_rows and groups is not None:
        inputs = replace(inputs, scatter=draw_scatter(groups, case.data, rng))
    return _with_index(inputs, case, rng) if plan.gathers_rows else inputs


def _with_index(inputs: GemmInputs, case: GemmCase, rng: np.random.Generator) -> GemmInputs:
    """Return the inputs with an index, and A and its scales by the rows that it names."""
    groups, (matrices, rows) = inputs.groups, inputs.a.shape[:2]
    counts = np.ones((matrices, rows), np.bool_)
    if groups is not None:  # all have their rows from one matrix
        counts = ~groups.rows_of_none().reshape(1, matrices * rows)
    kind = "permutation" if case.data in GROUP_KINDS else case.index  # groups share no row
    shared = "row_index" in case.shared
    count, index = draw_index(kind, (1 if shared else counts.shape[0], counts.shape[1]), rng)
    return replace(
        inputs,
        a=moved(inputs.a, count, index, counts),
        scales=(*(moved(one, count, index, counts) for one in inputs.scales[:1]),
                *inputs.scales[1:]),
        row_index=index if groups is None else index.reshape(matrices, rows),
    )  # fmt: skip


def _rounded(values: Floats, dtype: str) -> Floats:
    if dtype == "fp32":
        return values
    finite = np.isfinite(values)
    rounded: Floats = round_to(np.where(finite, values, np.float32(0)), dtype)
    return np.where(finite, rounded, values)


def _tensor_scale(
    inputs: GemmInputs, case: GemmCase, plan: GemmPlan, rng: np.random.Generator
) -> float:
    """Draw the scale of an output's tensor: near amax / (448 * 6), as a caller may know it.

    So most scales of blocks are in the middle of e4m3's range; where rows of the data are far
    apart, some are its largest number or its least. A power of two where sums are exact: elements
    are then ties more often.
    """
    size = abs(inputs.alpha) * _size(inputs.a) * _size(inputs.b) * max(case.k, 1) ** 0.5
    for scales in inputs.scales:
        size *= _size(scales) or 1.0
    if inputs.c is not None:
        size += abs(inputs.beta) * _size(inputs.c)
    amax = TYPICAL_AMAX * (size if plan.activation is None else 1.0)
    scale = float(np.clip(amax / NVFP4_LARGEST * rng.uniform(0.5, 2.0), *TENSOR_SCALES))
    if case.data == COUNTING:
        scale = 2.0 ** round(np.log2(scale))
    return float(np.float32(scale))


def _size(values: Floats) -> float:
    """Return the root mean square of finite numbers; 0 where there are none."""
    finite = values[np.isfinite(values)].astype(np.float64)
    return float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
