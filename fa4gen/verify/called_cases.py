"""Cases as a kernel may be called: heads and rows that its plan takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fa4gen.verify.cases import Case, unique

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.designs.common.attention_model import AttentionPlan


def as_called(plan: AttentionPlan, cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return the cases with the heads and rows that a call of ``plan`` may have, each once.

    A key head has a multiple of the query heads whose rows share a tile. Where the mask limits the
    query rows, cases with more are cut to the limit, and renamed.
    """
    return unique(_with_fewer_rows(plan, _with_more_heads(plan, case)) for case in cases)


def _with_more_heads(plan: AttentionPlan, case: Case) -> Case:
    if case.query_heads // case.key_heads % plan.tile_heads == 0:
        return case
    return replace(case, query_heads=plan.tile_heads * case.query_heads)


def _with_fewer_rows(plan: AttentionPlan, case: Case) -> Case:
    most = plan.mask.most_rows
    if most is None or all(rows <= most for rows, _ in (*case.sequences, (case.query_rows, 0))):
        return case
    return replace(
        case,
        name=f"{case.name}_of_{most}_rows",
        query_rows=min(case.query_rows, most),
        key_rows=most if case.layout == "packed" else case.key_rows,  # rows of one tensor
        lengths=tuple((min(rows, most), keys) for rows, keys in case.lengths),
    )
