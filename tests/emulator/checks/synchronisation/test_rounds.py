"""Knowledge between clusters: equal to an array of all clusters, but smaller."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fa4gen.emulator.checks.synchronisation.rounds import NOTHING, Grid, Rounds

CLUSTERS = 9
DENSE = st.lists(st.integers(0, 3), min_size=CLUSTERS, max_size=CLUSTERS)


def sparse(dense: list[int]) -> Rounds:
    known = NOTHING
    for cluster in np.flatnonzero(dense).tolist():
        known = known.joined(Rounds(cluster, np.array([dense[cluster]], np.uint32)))
    return known


def shown(known: Rounds) -> NDArray[np.uint32]:
    every = known.of(np.arange(CLUSTERS))
    assert every.tolist() == [known.of_one(cluster) for cluster in range(CLUSTERS)]
    return every


@given(DENSE, DENSE)
def test_joined_rounds_are_the_larger_ones(one: list[int], other: list[int]) -> None:
    left, right = sparse(one), sparse(other)
    assert shown(left.joined(right)).tolist() == np.maximum(one, other).tolist()
    assert shown(left).tolist() == one
    assert shown(right).tolist() == other


def test_nobody_knows_of_clusters_beside_those_kept() -> None:
    known = sparse([0, 0, 0, 2, 0, 1, 0, 0, 0])
    assert known.of(np.array([[-1, 2], [3, 100]])).tolist() == [[0, 0], [2, 0]]
    assert (known.of_one(-1), known.of_one(2), known.of_one(100)) == (0, 0, 0)


def test_a_release_is_known_once_it_is_acquired() -> None:
    grid = Grid(4)
    grid.publish(grid.fence(1), 64)
    released = grid.at(64)
    assert released is not None
    assert grid.known(2).of_one(1) == 0
    grid.learn(2, released)
    assert grid.known(2).of_one(1) == 1
    assert grid.rounds.tolist() == [1, 2, 1, 1]
    grid.publish(grid.fence(1), 64)
    assert released.of_one(1) == 1
    assert grid.before_writes(2).of_one(1) == 1
    later = grid.at(64)
    assert later is not None
    grid.saw(2, later)
    assert (grid.known(2).of_one(1), grid.before_writes(2).of_one(1)) == (1, 2)


def test_clusters_of_a_large_grid_keep_little() -> None:
    """Each of 2000 clusters of a million releases: not an array of all clusters for each."""
    grid = Grid(1 << 20)
    for cluster in range(2000):
        grid.publish(grid.fence(cluster), 4096 * cluster)
    kept = {
        id(one): one.values.nbytes
        for table in (grid._known, grid._places)
        for one in table.values()
    }
    assert sum(kept.values()) == 2000 * 4
