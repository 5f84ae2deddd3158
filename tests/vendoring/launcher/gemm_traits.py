"""Traits of matrix products: what selects a kernel, and the cost of a problem."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fa4gen.runtime.gemm_schedule import GemmSize, plan_gemm_schedule

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import AnyGemmPlan, GemmPlan
    from fa4gen.vendoring.binding import Problem


SCALES = ("scale_a_rows", "scale_b_rows", "scales_ue8m0", "scale_depth", "scales_in_atoms")


def traits(plan: GemmPlan) -> tuple[object, ...]:
    """Return the properties that a caller can choose, except dtypes and architecture."""
    layout = plan.gate_layout if plan.gated else None
    rows = plan.config.groups, plan.gathers_rows, *written(plan)
    majors = plan.a_major, plan.b_major
    return (*majors, plan.residual, plan.activation, layout, *rows, *scales(plan))


def scales(plan: GemmPlan) -> tuple[int, int, bool, int, bool]:
    """Return the properties of scales in the order of the struct's fields."""
    rows = {row.operand: row.rows for row in plan.scales}
    powers = any(row.dtype == "ue8m0" for row in plan.scales)
    depth = max((row.columns for row in plan.scales), default=0)
    in_atoms = any(row.in_atoms for row in plan.scales)
    return rows.get("a", 0), rows.get("b", 0), powers, depth, in_atoms


WRITTEN = (
    "out_scale_columns", "c_dtype", "out_scales_ue8m0", "scattered_rows", "amax",
    "out_scales_in_atoms",
)  # fmt: skip
DTYPES = {"bf16": 1, "fp16": 2, "fp8_e4m3": 3, "fp32": 4, "fp4_e2m1": 5}


def written(plan: GemmPlan) -> tuple[int, int, bool, bool, bool, bool]:
    """Return the properties of what is written in the order of the struct's fields."""
    form = plan.output_scales
    of_c = DTYPES[plan.c_dtype] if plan.c.exists and plan.c_dtype != plan.out_dtype else 0
    powers = form is not None and form.dtype == "ue8m0"
    columns, in_atoms = (form.columns, form.in_atoms) if form else (0, False)
    return columns, of_c, powers, plan.scatters_rows, plan.finds_amax, in_atoms


def set_traits(problem: Problem, plan: GemmPlan) -> None:
    """The fields that the launcher states of the kernel."""
    problem.family = 2
    problem.a_m_major, problem.b_n_major = plan.a_major == "m", plan.b_major == "n"
    problem.residual = {"none": 1, "matrix": 2, "row": 3, "column": 4}[plan.residual]
    for field, value in zip(SCALES, scales(plan), strict=True):
        setattr(problem, field, value)
    problem.gate_interleaved = plan.gated and plan.gate_layout == "interleaved"
    for field, value in zip(WRITTEN, written(plan), strict=True):
        setattr(problem, field, value)
    problem.groups = {None: 0, "offsets": 1, "masked": 2, "k_offsets": 3}[plan.config.groups]
    problem.gathered_rows = plan.gathers_rows
    problem.activation = plan.activation and plan.activation.encode()


def tiles(plan: AnyGemmPlan, problem: Problem, multiprocessors: int) -> tuple[int, Fraction]:
    """CTAs that the problem takes, and what each computes and reads."""
    size = GemmSize(problem.batch, problem.m, plan.output_columns(problem.n), problem.k)
    ctas = plan_gemm_schedule(plan, size, multiprocessors).num_tiles * plan.launch.cluster
    lines = plan.tile_rows + plan.tile_columns  # that the CTAs of a cluster read together
    read = Fraction(lines * plan.ctas_per_tile, plan.launch.cluster)
    return ctas, (plan.BM * plan.BN + 32 * read) / plan.ctas_per_tile


def extents(data: Any) -> dict[str, int]:
    """Return the extents of a random problem."""
    found = {field: data.draw(st.integers(1, 9000)) for field in ("m", "n", "k")}
    return {**found, "batch": data.draw(st.integers(1, 4))}
