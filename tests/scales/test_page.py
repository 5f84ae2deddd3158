"""The examples of the pages about block scales."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def check_examples(page: str, least: int) -> None:
    found = doctest.testfile(str(GUIDE / page), module_relative=False, encoding="utf-8")
    assert found.attempted >= least
    assert found.failed == 0


def test_the_examples_give_what_the_page_says() -> None:
    check_examples("scales.md", 8)


@pytest.mark.compile
def test_the_examples_of_a_scaled_product_give_what_its_page_says() -> None:
    check_examples("scaled-products.md", 15)
