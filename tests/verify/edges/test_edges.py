"""The emulator's cases are at every edge of every shipped plan; what is not says why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.find import find_configs
from fa4gen.designs.build import build_plan
from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from fa4gen.verify.edges.edge import Candidate, cover
from fa4gen.verify.edges.row_ends import parts_of, reached, tiles_of
from fa4gen.verify.family import family_of
from tests.shipped import loaded, plan_of

if TYPE_CHECKING:
    from fa4gen.verify.cases import Case

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


def edge_case(config: str, name: str) -> tuple[Case, set[str]]:
    """Return the emulated case of a name, and the edges that it is at."""
    plan = plan_of(find_configs([config])[0])
    family = family_of(plan)
    (case,) = (case for case in family.emulated_cases() if case.name == name)
    return case, set(family.reached(case))


def test_a_tile_that_leaves_a_part_out_follows_a_full_one() -> None:
    edge = "a tile that leaves a part out, after one that does not"
    case, edges = edge_case("d64_dense_bf16", "edges/left_out")
    assert edge in edges
    plan = plan_of(find_configs(["d64_dense_bf16"])[0])
    size = ProblemSize(1, case.query_heads, 1, case.query_rows, case.key_rows)
    schedule = plan_schedule(plan, size, 1)
    assert (schedule.grid, schedule.num_short_tiles, schedule.num_tiles) == (1, 1, 2)
    family = family_of(plan)
    # with a CTA for each tile, none has another after it
    assert edge not in family.reached(replace(case, multiprocessors=2))
    # short tiles alone, or none
    for rows in (2 * 128, 192):
        assert edge not in family.reached(replace(case, query_rows=rows))


def test_keys_may_end_where_the_mask_leaves_a_block_whole() -> None:
    """Rows see 20 keys past their own: one row of 236 keys would see all of a block of 256."""
    edge = "keys that end in a block without an end of the mask"
    case, edges = edge_case("depth512_window_fp8", "edges/only_keys_end")
    assert edge in edges
    assert (case.query_rows, case.key_rows) == (1, 236)
    family = family_of(plan_of(find_configs(["depth512_window_fp8"])[0]))
    for rows, keys in ((1, 235), (1, 256), (2, 236)):
        assert edge not in family.reached(replace(case, query_rows=rows, key_rows=keys))


@pytest.mark.parametrize("config", ["d64_ragged_dense_bf16", "d128_lengths_causal_bf16"])
def test_a_tile_without_keys_follows_one_with_keys(config) -> None:
    edge = "a tile without keys, after one with keys"
    case, edges = edge_case(config, "edges/unseen_last")
    assert edge in edges
    family = family_of(plan_of(find_configs([config])[0]))
    (rows, keys), last = case.sequences
    assert last == (rows, 0)
    for lengths in (((rows, 0),), ((rows, keys),), ((3, keys), (3, 0))):
        assert edge not in family.reached(replace(case, lengths=lengths))
    assert edge not in family.reached(replace(case, multiprocessors=2))
    in_turn = edge in family.reached(replace(case, lengths=case.sequences[::-1]))
    assert in_turn is config.startswith("d64_ragged")  # whose tiles are sorted


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
