from __future__ import annotations

from fa4gen.designs.common.choices import ChoiceLog
from fa4gen.designs.common.model import Choice
from fa4gen.strict import Strict


class Config(Strict):
    one: int | str = "auto"
    two: int | str = 2


def test_who_decided_is_remembered_in_order() -> None:
    log = ChoiceLog(Config(one=5))
    assert log.take("one", 5, 1, "measured") == 5
    assert log.take("two", 2, 1, "measured") == 2
    assert log.take("one", "auto", 1, "measured") == 1
    log.note("three", 3, "derived", "one + two")
    assert log.rows == (
        Choice("one", 5, "config", ""),
        Choice("two", 2, "default", "measured"),
        Choice("one", 1, "auto", "measured"),
        Choice("three", 3, "derived", "one + two"),
    )


def test_auto_that_was_written_out_is_still_auto() -> None:
    log = ChoiceLog(Config(one="auto"))
    log.take("one", "auto", 1, "measured")
    assert log.rows[0].source == "auto"
