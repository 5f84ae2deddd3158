"""The edges of attention kernels, and the emulator's cases that reach those not reached before."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, cast

from fa4gen.verify.cases import COUNTING, MULTIPROCESSORS, of_sequences
from fa4gen.verify.edges import shares
from fa4gen.verify.edges.edge import Candidate, Edge, cover
from fa4gen.verify.edges.row_ends import reached as reached_by_rows
from fa4gen.verify.edges.row_problems import row_edges, row_problems
from fa4gen.verify.edges.shares import share_edges, share_problems
from fa4gen.verify.edges.specials import specials
from fa4gen.verify.score_tiles import score_tiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.decode_model import SharedKeysPlan
    from fa4gen.verify.cases import Case


def edges(plan: AttentionPlan) -> tuple[Edge, ...]:
    """Return the edges of a plan, those that no problem reaches among them; each once."""
    found: dict[str, Edge] = {}
    for edge in share_edges(_shared(plan)) if plan.splits_keys else row_edges(plan):
        if edge.name not in found or found[edge.name].impossible:
            found[edge.name] = edge
    return (*found.values(), *(one.edge(plan) for one in specials(plan)))


def reached(plan: AttentionPlan, case: Case) -> frozenset[str]:
    """Return the names of the edges that a case reaches."""
    own = frozenset(one.name for one in specials(plan) if one.has(plan, case))
    if plan.splits_keys:
        return own.union(shares.reached(_shared(plan), case))
    if not case.query_heads or not case.batch:
        return own
    heads = case.query_heads // plan.tile_heads
    count = case.multiprocessors or MULTIPROCESSORS
    return own.union(
        name
        for rows, keys in set(case.sequences)
        for name in reached_by_rows(plan, rows, keys, case.batch * heads, count)
    )


def _shared(plan: AttentionPlan) -> SharedKeysPlan:
    """Return a plan that splits keys: it has units and shares."""
    return cast("SharedKeysPlan", plan)


def edge_cases(plan: AttentionPlan, others: Iterable[Case]) -> tuple[Case, ...]:
    """Return the cheapest cases for the edges that ``others`` do not reach."""
    wanted = {edge.name for edge in edges(plan) if not edge.impossible}
    for case in others:
        wanted -= reached(plan, case)
    made = [one.make(plan) for one in specials(plan) if one.name in wanted]
    for case in made:
        wanted -= reached(plan, case)
    chosen = cover(_candidates(plan), wanted)
    return (*made, *(one.item for one in chosen))


@lru_cache(maxsize=4)
def _candidates(plan: AttentionPlan) -> tuple[Candidate[Case], ...]:
    if plan.splits_keys:
        made = share_problems(_shared(plan))
        return tuple(Candidate(case, reached(plan, case), _cost(plan, case)) for case in made)
    problems = dict.fromkeys(row_problems(plan, MULTIPROCESSORS))
    return tuple(_candidate(plan, rows, keys) for rows, keys in problems)


def _candidate(plan: AttentionPlan, rows: int, keys: int) -> Candidate[Case]:
    name, heads = f"edges/{rows}x{keys}", (plan.tile_heads, 1)
    case = of_sequences(plan, name, (rows, keys), heads=heads, data=COUNTING)
    return Candidate(case, reached(plan, case), _cost(plan, case))


def _cost(plan: AttentionPlan, case: Case) -> int:
    """Return the cost in blocks of keys, with that of each launch."""
    blocks = score_tiles(plan, case)
    return 2 + blocks["full"] + blocks["partial"]
