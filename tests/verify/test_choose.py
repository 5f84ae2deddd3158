"""Cases chosen by globs."""

from __future__ import annotations

import pytest

from fa4gen.errors import ConfigError
from fa4gen.verify.cases import Case
from fa4gen.verify.choose import check_patterns, select_cases


def test_cases_are_chosen_by_glob() -> None:
    cases = [Case(name, 1, 1, 1, 1, 1) for name in ("gqa/1", "gqa/2", "size/1")]
    assert select_cases(cases, ()) == tuple(cases)
    assert [case.name for case in select_cases(cases, ("gqa/*",))] == ["gqa/1", "gqa/2"]
    assert [case.name for case in select_cases(cases, ("*/1",))] == ["gqa/1", "size/1"]
    assert select_cases(cases, ("GQA/*",)) == ()


def test_patterns_without_a_match_are_refused_all_at_once() -> None:
    cases = [Case("gqa/1", 1, 1, 1, 1, 1)]
    check_patterns(cases, ("gqa/*",))
    with pytest.raises(ConfigError) as caught:
        check_patterns(cases, ("gqa/*", "nope", "x/*"))
    assert [problem.message for problem in caught.value.problems] == [
        "no case is named nope",
        "no case is named x/*",
    ]
