from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from fa4gen.runtime.timing import Timing
from fa4gen.tune.search.decide import hopeful, judge
from fa4gen.tune.search.measure import after_all, measure
from fa4gen.tune.search.timer import time_runs
from tests.tune.search.fakes import FakeRounds

if TYPE_CHECKING:
    from collections.abc import Sequence


def rounds_of(**us: float) -> FakeRounds:
    ours = tuple(name for name in us if name != "peer")
    return FakeRounds(ours, tuple({"peer"} & set(us)), {}, lambda name: us[name])


def test_a_clear_winner_needs_three_rounds() -> None:
    rounds = rounds_of(a=10, b=10.5, c=30, peer=12)
    found = measure(rounds, most_rounds=9, seconds=100)
    assert (found.winner, found.clear) == ("a", True)
    assert [turn for turn, _ in rounds.log] == [0, 1, 2]
    assert {name: len(taken) for name, taken in found.times.items()} == {
        "a": 3, "b": 3, "c": 1, "peer": 3,
    }  # fmt: skip
    orders = {names for _, names in rounds.log}
    assert len(orders) > 1  # shuffled


def test_the_config_itself_wins_after_all_where_it_is_as_fast() -> None:
    """A new kernel that was ahead in three rounds only has to be ahead in the next ones, too."""

    class Lucky(FakeRounds):
        def time(self, names: Sequence[str], turn: int) -> dict[str, float]:
            its = 9.0 if turn < 3 else 10.0
            return super().time(names, turn) | {"new": its}

    us = {"new": 9, "base": 10, "peer": 12}
    found = measure(
        Lucky(("new", "base"), ("peer",), {}, us.__getitem__),
        most_rounds=3, seconds=100, again=5, baseline="base",
    )  # fmt: skip
    assert (found.winner, found.clear) == ("base", False)
    assert found.figure("base") == pytest.approx(10, rel=0.01)
    assert after_all("new", "base", {"new": [10.0], "base": [10.2]}) == "new"
    assert after_all("new", "base", {"new": [10.0], "base": [10.05]}) == "base"
    assert after_all("new", "base", {"new": [10.0]}) == "new"


def test_the_likeliest_kernel_is_not_given_up_for_one_time() -> None:
    """35.6 us in its first round, on an H200, where it takes 14.6: it was not timed again."""

    class Delayed(FakeRounds):
        def time(self, names: Sequence[str], turn: int) -> dict[str, float]:
            found = super().time(names, turn)
            return found | {"first": 35.6} if len(self.log) == 1 else found

    us = {"first": 14.6, "second": 15.6, "third": 30.0}
    found = measure(Delayed(tuple(us), (), {}, us.__getitem__), most_rounds=9, seconds=100)
    assert found.winner == "first"
    assert len(found.times["third"]) == 1


def test_equal_kernels_are_timed_on_and_hopeless_ones_and_peers_are_not() -> None:
    rounds = rounds_of(a=10, b=10.01, c=30, peer=12)
    found = measure(rounds, most_rounds=7, seconds=100)
    assert not found.clear
    assert {name: len(taken) for name, taken in found.times.items()} == {
        "a": 7, "b": 7, "c": 1, "peer": 3,
    }  # fmt: skip


def test_what_is_hopeless_depends_on_the_rounds() -> None:
    medians = {"best": 10.0, "near": 10.5, "behind": 11.4, "far": 12.5, "lost": 14.0}
    assert hopeful(medians, 1) == ("best", "near", "behind", "far")
    assert hopeful(medians, 2) == ("best", "near", "behind")
    assert hopeful(medians, 6) == ("best", "near")
    assert hopeful({}, 1) == ()


def test_a_peer_that_is_far_behind_another_is_timed_once() -> None:
    us = {"a": 10, "b": 10, "peer": 12, "slow": 30}
    rounds = FakeRounds(("a", "b"), ("peer", "slow"), {}, us.__getitem__)
    found = measure(rounds, most_rounds=6, seconds=100, again=2, baseline="b")
    assert {name: len(taken) for name, taken in found.times.items()} == {
        "a": 6, "b": 6, "peer": 3, "slow": 1,
    }  # fmt: skip
    assert found.again.keys() == {"a", "b", "peer"}
    assert found.figure("slow") == pytest.approx(30, rel=0.01)


def test_the_winner_is_timed_again_for_its_figure() -> None:
    """The luck of the rounds in which it was chosen is not part of it."""

    class Lucky(FakeRounds):
        def time(self, names: Sequence[str], turn: int) -> dict[str, float]:
            slower = 2.0 if turn >= 3 else 0.0
            return {name: us + slower for name, us in super().time(names, turn).items()}

    us = {"a": 10, "b": 11, "base": 20, "peer": 12}
    rounds = Lucky(("a", "b", "base"), ("peer",), {}, us.__getitem__)
    found = measure(rounds, most_rounds=3, seconds=100, again=5, baseline="base")
    assert found.winner == "a"
    assert [len(found.again[name]) for name in ("a", "base", "peer")] == [5, 5, 5]
    assert "b" not in found.again
    assert found.figure("a") == pytest.approx(12, rel=0.01)
    assert found.figure("base") == pytest.approx(22, rel=0.01)
    assert found.figure("peer") == pytest.approx(14, rel=0.01)
    assert found.figure("b") == pytest.approx(11, rel=0.01)
    assert found.figure("unknown") is None
    assert len({names for turn, names in rounds.log if turn >= 3}) > 1  # shuffled


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


def test_times_of_the_gpu_are_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    def time_in_turn(runs: dict[str, object], *_: object, rounds: int) -> dict[str, object]:
        assert rounds == 1
        return {name: (Timing((0.002,)),) for name in runs}

    monkeypatch.setattr("fa4gen.runtime.timing.time_in_turn", time_in_turn)
    assert time_runs({"a": print, "b": print, "c": print}, ["c", "a"], 0) == {"c": 2.0, "a": 2.0}
