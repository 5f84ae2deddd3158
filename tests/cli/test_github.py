from __future__ import annotations

from fa4gen.cli.github import annotation
from fa4gen.errors import Problem


def test_a_place_becomes_properties() -> None:
    problem = Problem("wrong", file="a,b:c.yaml", line=3, column=7)

    assert annotation("warning", problem) == "::warning file=a%2Cb%3Ac.yaml,line=3,col=7::wrong"


def test_without_a_place_there_are_no_properties() -> None:
    assert annotation("notice", Problem("50%: a, b")) == "::notice::50%25: a, b"


def test_message_and_remedy_stay_on_one_line() -> None:
    line = annotation("error", Problem("one\r\ntwo", "three"))

    assert line == "::error::one%0D%0Atwo%0Athree"
