from __future__ import annotations

import itertools

import pytest

from fa4gen.tune.search.decide import judge
from fa4gen.tune.search.measure import measure
from tests.tune.search.fakes import FakeRounds


def rounds_of(**us: float) -> FakeRounds:
    ours = tuple(name for name in us if name != "peer")
    return FakeRounds(ours, tuple({"peer"} & set(us)), {}, lambda name: us[name])


def test_a_clear_winner_needs_three_rounds() -> None:
    rounds = rounds_of(a=10, b=10.5, c=30, peer=12)
    found = measure(rounds, most_rounds=9, seconds=100)
    assert (found.winner, found.clear) == ("a", True)
    assert [turn for turn, _ in rounds.log] == [0, 1, 2]
    assert {name: len(taken) for name, taken in found.times.items()} == {
        "a": 3, "b": 3, "c": 3, "peer": 3,
    }  # fmt: skip
    orders = {names for _, names in rounds.log}
    assert len(orders) == 3  # shuffled


def test_equal_kernels_are_timed_on_and_hopeless_ones_and_peers_are_not() -> None:
    rounds = rounds_of(a=10, b=10.01, c=30, peer=12)
    found = measure(rounds, most_rounds=7, seconds=100)
    assert not found.clear
    assert {name: len(taken) for name, taken in found.times.items()} == {
        "a": 7, "b": 7, "c": 3, "peer": 3,
    }  # fmt: skip


def test_of_equal_kernels_one_that_exists_wins() -> None:
    assert measure(rounds_of(a=10, b=10.05), most_rounds=4, seconds=9).winner == "a"
    found = measure(rounds_of(a=10, b=10.05), most_rounds=4, seconds=9, existing=["b"])
    assert found.winner == "b"
    found = measure(rounds_of(a=10, b=10.3), most_rounds=4, seconds=9, existing=["b"])
    assert found.winner == "a"


def test_time_runs_out_after_a_whole_round() -> None:
    ticks = itertools.count(0, 5)
    rounds = rounds_of(a=10, b=10)
    found = measure(rounds, most_rounds=9, seconds=8, clock=lambda: next(ticks))
    assert len(rounds.log) == 2
    assert found.winner
    assert not found.clear


def test_nothing_to_measure() -> None:
    assert measure(rounds_of(), most_rounds=3, seconds=1).winner == ""


@pytest.mark.parametrize(
    ("times", "clear"),
    [
        ({"a": [10, 10, 10], "b": [11, 11, 11]}, True),
        ({"a": [10, 10, 10, 10], "b": [11, 11, 9, 9.5]}, False),  # faster in half of the rounds
        ({"a": [10, 10], "b": [20, 20]}, False),  # two rounds
        ({"a": [10, 10, 10]}, True),
    ],
)
def test_when_it_is_clear(times: dict[str, list[float]], clear: bool) -> None:
    assert judge(times).clear is clear
