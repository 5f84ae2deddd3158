"""What the self-test of a vendored folder reads of each kernel: sizes, roundings, schedules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.shared.attention_model import AttentionPlan
from fa4gen.runtime.gemm_schedule import GemmSize, plan_gemm_schedule
from fa4gen.runtime.schedule import ProblemSize, plan_schedule

if TYPE_CHECKING:
    from fa4gen.designs.shared.gemm_model import GemmPlan
    from fa4gen.designs.shared.plans import Plan

_FLOAT_LITERAL = re.compile(r"(\d\.?\d*(?:e[+-]?\d+)?)f\b")
_FLOAT_FUNCTION = re.compile(r"\b(erf|exp|log|tanh|sqrt|fabs|fmax|fmin)f\(")
_MULTIPROCESSORS = (132, 148, 78, 1)
_ATTENTION_SIZES = (
    # batch, query heads, query heads a key head, query rows, key rows
    (2, 8, 2, 4096, 4096),
    (1, 32, 8, 1, 8192),
    (3, 5, 1, 333, 1000),
    (1, 150, 1, 200, 600),
    (7, 2, 2, 129, 0),
    (2, 4, 1, 0, 100),
)
_GEMM_SIZES = (
    # batch, m, n, k
    (1, 4096, 4096, 4096),
    (3, 333, 555, 1000),
    (1, 8192, 1000, 40000),
    (64, 17, 40, 0),
    (1, 0, 40, 64),
)


@dataclass(frozen=True)
class SelftestFacts:
    """Numbers of one kernel; those of the other family are 0."""

    rows: int
    """Of the output's tile, of a pair of CTAs where they share one."""
    columns: int
    """Keys of a block, or columns of the output's tile."""
    stage_depth: int
    """Elements along k of a stage."""
    ring: int
    """Keys, or elements along k, that more than fill the ring of stages."""
    descales: bool
    rescale_threshold: float
    probability_shift: int
    exp2_error: float
    products_per_step: int
    alignment_bits: int
    activation: str | None
    """As an expression of C over ``double x``."""
    activation_float: str | None
    """The same over ``float x``."""
    schedules: tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]
    """Extents, multiprocessors, and the schedule that the launcher has to make of them."""


def selftest_facts(plan: Plan) -> SelftestFacts:
    """Return the facts of ``plan``'s kernel."""
    return _attention(plan) if isinstance(plan, AttentionPlan) else _gemm(plan)


def double_expression(cuda: str) -> str:
    """Return C over double for an activation's CUDA over float: ``1.f`` -> ``1.``."""
    text = float_expression(cuda).replace("divide_float(", "divide(")
    return _FLOAT_FUNCTION.sub(r"\1(", _FLOAT_LITERAL.sub(r"\1", text))


def float_expression(cuda: str) -> str:
    """Return C over float: the one function that only CUDA has gets another name."""
    return cuda.replace("__fdividef(", "divide_float(")


def _attention(plan: AttentionPlan) -> SelftestFacts:
    from fa4gen.verify.precision import Precision

    precision = Precision.of(plan)
    schedules = []
    for size in _ATTENTION_SIZES:
        for multiprocessors in _MULTIPROCESSORS:
            made = plan_schedule(plan, ProblemSize(*size), multiprocessors)
            expected = (
                made.num_short_tiles,
                made.tiles_per_head,
                made.heads_per_group,
                made.num_tiles,
                made.grid,
            )
            schedules.append((size, multiprocessors, expected))
    return SelftestFacts(
        rows=plan.BM,
        columns=plan.BN,
        stage_depth=0,
        ring=(max(plan.num_kv_stages, 2) + 1) * plan.BN,
        descales=plan.has_descales,
        rescale_threshold=precision.rescale_threshold,
        probability_shift=precision.probability_shift,
        exp2_error=precision.exp2_error,
        products_per_step=0,
        alignment_bits=0,
        activation=None,
        activation_float=None,
        schedules=tuple(schedules),
    )


def _gemm(plan: GemmPlan) -> SelftestFacts:
    from fa4gen.verify.gemm.tolerance import Accumulation

    how = Accumulation.of(plan)
    schedules = []
    for size in _GEMM_SIZES:
        for multiprocessors in _MULTIPROCESSORS:
            made = plan_gemm_schedule(plan, GemmSize(*size), multiprocessors)
            expected = (
                made.row_tiles,
                made.column_tiles,
                made.num_tiles,
                made.group_rows,
                made.grid,
            )
            schedules.append((size, multiprocessors, expected))
    cuda = plan.activation_cuda
    return SelftestFacts(
        rows=plan.cta_group * plan.BM,
        columns=plan.BN,
        stage_depth=plan.BK,
        ring=(plan.num_stages + 1) * plan.BK,
        descales=False,
        rescale_threshold=0.0,
        probability_shift=0,
        exp2_error=0.0,
        products_per_step=how.products_per_step,
        alignment_bits=how.alignment_bits,
        activation=None if cuda is None else double_expression(cuda),
        activation_float=None if cuda is None else float_expression(cuda),
        schedules=tuple(schedules),
    )
