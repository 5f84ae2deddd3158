"""Memory that launches use in turn: what one leaves in it is seen."""

from __future__ import annotations

from fa4gen.config.find import find_configs
from fa4gen.runtime.schedule import ProblemSize, plan_schedule
from fa4gen.verify.workspace import NAN_WORD, Kept, Workspace, workspace
from tests.shipped import plan_of


def test_what_is_left_is_said_once() -> None:
    memory = Workspace()
    given = memory.give({"tickets": Kept(8)})["tickets"]
    assert not given.any()
    given[3] = 2
    given[5] = 7
    assert list(memory.take_back()) == [
        "tickets[3] is 2 after the launch, 0 was expected, and 1 words more"
    ]
    assert not memory.give({"tickets": Kept(8)})["tickets"].any()
    assert list(memory.take_back()) == []


def test_launches_of_any_size_share_it() -> None:
    memory = Workspace()
    large = memory.give({"tickets": Kept(8)})["tickets"]
    small = memory.give({"tickets": Kept(2)})["tickets"]
    assert small.size == 2
    assert small.ctypes.data == large.ctypes.data
    assert memory.give({"tickets": Kept(64)})["tickets"].size == 64


def test_partial_results_are_poisoned_before_each_launch_but_for_tickets() -> None:
    memory = Workspace()
    kept = {"partials": Kept(12, row=6, first_zero=4)}
    for _ in range(2):
        rows = memory.give(kept)["partials"].reshape(-1, 6)
        assert (rows[:, :4] == NAN_WORD).all()
        assert not rows[:, 4:].any()
        rows[:, :4] = 5
        assert list(memory.take_back()) == []
    rows[1, 5] = 9
    memory.give(kept)["partials"][11] = 9
    assert list(memory.take_back()) == ["partials[11] is 9 after the launch, 0 was expected"]


def test_a_launch_that_was_given_up_is_not_held_against_the_next() -> None:
    memory = Workspace()
    memory.give({"tickets": Kept(4)})["tickets"][:] = 1
    assert not memory.give({"tickets": Kept(4)})["tickets"].any()
    assert list(memory.take_back()) == []


def test_the_workspace_of_a_plan_is_as_large_as_it_says() -> None:
    plan = plan_of(find_configs(["decode_d128_bf16"])[0])
    schedule = plan_schedule(plan, ProblemSize(2, 4, 2, 1, 900), 4)
    kept = workspace(plan, schedule)
    words = sum(one.words for one in kept.values())
    assert 4 * words == plan.workspace_bytes(schedule.grid, schedule.num_tiles)
    assert kept["partials"].words % kept["partials"].row == 0
