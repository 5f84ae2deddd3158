"""The examples of the page about block scales."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "scales.md"


def test_the_examples_give_what_the_page_says() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted >= 8
    assert found.failed == 0
