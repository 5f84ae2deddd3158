"""The emulator's cases are at every edge of every shipped plan; what is not says why."""

from __future__ import annotations

import pytest

from fa4gen.config.find import find_configs
from fa4gen.designs.build import build_plan
from fa4gen.verify.edges.edge import Candidate, cover
from fa4gen.verify.edges.row_ends import parts_of, reached, tiles_of
from fa4gen.verify.family import family_of
from tests.shipped import loaded, plan_of

SHIPPED = [path.stem for path in find_configs(["attention", "gemm"])]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_case_is_at_every_edge(name: str) -> None:
    plan = plan_of(find_configs([name])[0])
    family = family_of(plan)
    cases = family.emulated_cases()
    assert len({case.name for case in cases}) == len(cases)
    there = {edge for case in cases for edge in family.reached(case)}
    edges = {edge.name: edge for edge in family.edges()}
    assert len(edges) == len(family.edges())
    assert there <= set(edges), "cases are at edges that are not listed"
    not_reached = {name for name in edges if name not in there}
    assert not_reached == {name for name, edge in edges.items() if edge.impossible}


def test_cases_at_edges_are_cheap() -> None:
    for name in SHIPPED[::12]:
        plan = plan_of(find_configs([name])[0])
        family = family_of(plan)
        own = ("edges/", "strides/", "groups/", "tensors/")
        cost = {True: 0.0, False: 0.0}
        for case in family.emulated_cases():
            cost[case.name.startswith(own)] += family.cost(case)
        assert cost[True] < 2.5 * cost[False], name


def test_the_ends_of_a_causal_mask() -> None:
    """BM is 128, BN is 128: three tiles, of which the first ends one key past a block."""
    plan = plan_of(find_configs(["d128_causal_pingpong_bf16"])[0])
    assert (plan.BM, plan.BN) == (128, 128)
    found = set(reached(plan, 300, 301, 1, 4))
    assert "end of the first tile one past a boundary" in found
    assert "end of the inner tile one past a boundary" in found
    assert "end of the last tile one past a boundary" not in found
    assert "end of the last tile one past a boundary" in set(reached(plan, 300, 385, 1, 4))
    assert "end at key 0" in set(reached(plan, 300, 172, 1, 4))
    assert "end where the keys end" in found


def test_the_ends_of_a_window() -> None:
    plan = plan_of(find_configs(["d64_window_sinks_bf16"])[0])
    assert (plan.BN, plan.mask.window_left) == (64, 127)
    assert {"begin of the first tile on a boundary", "begin of a part on a boundary"} <= set(
        reached(plan, 5, 5 + 127, 1, 4)
    ) | set(reached(plan, 64, 64 + 127 + 64, 1, 4))
    assert "begin at key 0" in set(reached(plan, 5, 5 + 127, 1, 4))
    assert "begin below key 0" in set(reached(plan, 5, 5 + 126, 1, 4))


def test_tiles_are_those_of_the_schedule() -> None:
    plan = plan_of(find_configs(["d128_causal_bf16"])[0])
    assert (plan.BM, plan.mixed_tile_heights) == (192, True)
    tiles = tiles_of(plan, 193, 193, 1, 4)  # a short tile leaves fewer rows empty
    assert [(one.first, one.last, one.places) for one in tiles] == [
        (0, 127, ("first",)),
        (128, 192, ("last",)),
    ]
    assert [(one.first, one.last) for one in parts_of(plan, tiles)] == [
        (0, 63),
        (64, 127),
        (128, 191),
    ]


def test_what_no_row_sees_is_impossible_with_its_reason() -> None:
    config = loaded(find_configs(["d64_window_sinks_bf16"])[0]).config
    edges = {edge.name: edge for edge in family_of(build_plan(config)).edges()}
    assert edges["end one past the keys'"].impossible == "no row sees a key past its own position"
    assert not edges["begin of the inner tile one before a boundary"].impossible


def test_a_cover_is_cheap_and_whole() -> None:
    made = [
        Candidate("all", frozenset("abc"), 10.0),
        Candidate("a", frozenset("a"), 1.0),
        Candidate("bc", frozenset("bc"), 2.0),
        Candidate("ab", frozenset("ab"), 1.5),
    ]
    assert [one.item for one in cover(made, {"a", "b"})] == ["ab"]
    assert [one.item for one in cover(made, {"c", "nowhere"})] == ["bc"]
    chosen = cover(made, {"a", "b", "c"})
    assert {name for one in chosen for name in one.reached} == {"a", "b", "c"}
    assert sum(one.cost for one in chosen) < 10
