"""The most rows, heads and sequences that an attention kernel can number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.tensor_maps import END_ROW
from fa4gen.runtime.refusal import wrong
from fa4gen.runtime.schedule import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView


def largest_row_count(plan: AttentionPlan) -> int:
    """Return the most query and key rows that the kernel can number.

    It rounds row numbers up to whole tiles and blocks, and adds the mask's numbers to them, or
    evaluates an expression of them. Rows of heads that share a tile are numbered together.
    """
    reach = max(plan.mask.reach, plan.score.reach)
    most = (INT32_MAX - (4 * plan.BM + plan.BN + reach)) // plan.tile_heads
    return min(most, END_ROW) if plan.has_tile_lengths else most


def largest_head_count(plan: AttentionPlan) -> int:
    """Return the most query heads and the most sequences: expressions may compute with both."""
    has_expression = plan.mask.IS_EXPRESSION or plan.score.IS_EXPRESSION
    return largest_row_count(plan) if has_expression else INT32_MAX


def largest_query_count(plan: AttentionPlan) -> int:
    """Return the most query rows of a call, which the mask may limit further."""
    most = largest_row_count(plan)
    return most if plan.mask.most_rows is None else min(most, plan.mask.most_rows)


def check_counts(
    plan: AttentionPlan, query: TensorView, sequences: int | None
) -> Iterator[Problem]:
    """Refuse more heads and sequences than expressions compute with."""
    most = largest_head_count(plan)
    if query.shape[2] > most:
        yield wrong("query", f"{query.shape[2]} heads", f"at most {most} heads")
    if sequences is not None and sequences > most:
        name = "query_offsets" if plan.is_ragged else "query"
        yield wrong(name, f"{sequences} sequences", f"at most {most} sequences")
