from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.designs.common.refusal import Changes, Refusal, refuse_faults
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import Strict, rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Box(Strict):
    width: int = 1
    height: int | str = "auto"
    lid: bool = False


class WideBox(Box):
    width: int = 7


def changed(box: Any, changes: Changes) -> Any:
    return type(box).model_validate({**box.data(only_given=True), **changes})


def faults_of(
    *remedies: Iterable[Changes], last_resort: Iterable[Changes] = ()
) -> Callable[[Box], list[Refusal]]:
    """Wide boxes and high boxes are refused; the remedies are those of the width."""

    def find(box: Box) -> list[Refusal]:
        faults = []
        if box.width > 5:
            keys = ("lid", "height", "width")
            faults.append(Refusal("wide", f"{box.width} is wide", keys, remedies, last_resort))
        if isinstance(box.height, int) and box.height > 5:
            faults.append(Refusal("high", "high", ("height",), ([{"height": 5}],)))
        return faults

    return find


def refused(box: Box, find: Callable[[Box], list[Refusal]]) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        refuse_faults(box, find, changed)
    return caught.value.problems


def test_what_has_no_fault_passes() -> None:
    refuse_faults(Box(width=5), faults_of(), changed)


def test_only_what_works_is_offered() -> None:
    find = faults_of(
        [{"width": 9}, {"width": 6}, {"width": 4}, {"width": 3}],
        [{"lid": True}],
        [{"width": 2, "height": 9}],
        [{"width": 2, "lid": True}],
    )
    [problem] = refused(Box(width=7), find)
    assert problem == Problem("7 is wide", "Set width: 4; or width: 2 and lid: true.", key="width")


def test_what_the_model_refuses_is_not_offered() -> None:
    class Small(Box):
        @rule
        def _lids_are_of_low_boxes(self) -> None:
            if self.lid and self.height != "auto":
                raise ValueError("a lid on a high box")

    find = faults_of([{"width": 4, "lid": True}, {"width": 3}])
    [problem] = refused(Small(width=7, height=2), find)
    assert problem.remedy == "Set width: 3."


def test_changes_that_make_all_well_go_before_changes_that_help() -> None:
    find = faults_of([{"width": 5}, {"width": 4, "height": 1}])
    wide, high = refused(Box(width=7, height=8), find)
    assert wide.remedy == "Set width: 4 and height: 1."
    assert high.remedy == "Set height: 5."
    [alone] = refused(Box(width=7, height=2), faults_of([{"width": 5}, {"width": 4, "height": 1}]))
    assert alone.remedy == "Set width: 5."


def test_the_last_resort_is_for_when_nothing_else_works() -> None:
    last: list[Changes] = [{"width": 1}]
    assert refused(Box(width=7), faults_of([{"width": 6}], last_resort=last))[0].remedy == (
        "Set width: 1."
    )
    assert refused(Box(width=7), faults_of([{"width": 2}], last_resort=last))[0].remedy == (
        "Set width: 2."
    )
    assert refused(Box(width=7), faults_of([{"width": 6}]))[0].remedy == ""


def test_offers_that_read_the_same_come_once() -> None:
    [problem] = refused(Box(width=7), faults_of([{"width": 5}], [{"width": 5}]))
    assert problem.remedy == "Set width: 5."


@pytest.mark.parametrize(
    ("box", "key"),
    [
        (Box(width=7, lid=True), "lid"),
        (Box(width=7), "width"),
        (Box(width=7, height="auto"), "width"),
        (Box(width=7, height=3), "height"),
        (WideBox(), "lid"),
    ],
)
def test_the_problem_is_placed_at_the_first_key_with_a_value(box: Box, key: str) -> None:
    assert refused(box, faults_of([{"width": 1}]))[0].key == key


def test_changes_are_written_over_what_the_config_says() -> None:
    box = changed(Box(width=7), {"height": 3})
    assert box == Box(width=7, height=3)
    assert box.model_fields_set == {"width", "height"}
