"""Traits of attention kernels: what selects one, and the cost of a problem."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fa4gen.runtime.schedule import WARPGROUP_ROWS, ProblemSize, plan_schedule

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.vendoring.binding import Problem

ROWS = st.integers(1, 9000)


def traits(plan: AttentionPlan) -> tuple[object, ...]:
    """Return the properties that a caller can choose, except dtypes and architecture."""
    kinds = (plan.batching, plan.keys, plan.page_size, plan.key_lengths, plan.sinks)
    return (plan.depth, plan.value_depth, plan.mask, plan.score, plan.lse, *kinds)


def set_traits(problem: Problem, plan: AttentionPlan) -> None:
    """The fields that the launcher states of the kernel."""
    problem.family = 1
    problem.depth, problem.value_depth = plan.depth, plan.value_depth
    named = {"none": 1, "causal": 2, "sliding_window": 3, "chunked": 4}
    problem.mask = 0 if plan.score.IS_EXPRESSION else named.get(plan.mask.name, 0)
    for name, value in plan.mask.numbers().items():
        setattr(problem, name, value)
    problem.softcap = plan.score.numbers().get("softcap", 0)
    problem.lse = plan.lse
    problem.sinks, problem.page_size = plan.sinks, plan.page_size or 0
    problem.query_offsets, problem.key_offsets = plan.is_ragged, plan.keys == "ragged"
    problem.key_lengths = plan.is_paged or plan.key_lengths


def tiles(plan: AttentionPlan, problem: Problem, multiprocessors: int) -> tuple[int, Fraction]:
    """CTAs that the problem takes, and what each computes."""
    size = ProblemSize(
        problem.batch,
        problem.query_heads,
        problem.query_heads // max(1, problem.key_heads),
        problem.query_rows,
        problem.key_rows,
    )
    schedule = plan_schedule(plan, size, multiprocessors)
    work = Fraction(plan.BM, plan.ctas_per_tile)
    if plan.splits_keys:
        work = Fraction(64 * plan.line_step * plan.BN, max(1, problem.key_rows))
    if schedule.num_short_tiles:
        work -= Fraction(WARPGROUP_ROWS * schedule.num_short_tiles, schedule.tiles_per_head)
    return schedule.num_tiles * plan.ctas_per_tile, work


def extents(data: Any) -> dict[str, int]:
    """Return the extents of a random problem."""
    key_heads = data.draw(st.integers(1, 4))
    return {
        "batch": data.draw(st.integers(1, 40)),
        "query_rows": data.draw(ROWS),
        "key_rows": data.draw(ROWS),
        "query_heads": key_heads * data.draw(st.integers(1, 8)),
        "key_heads": key_heads,
    }
