"""How a generated kernel is laid out: parameters, memory and rings at the head, then its roles."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

SOURCES: Final = sorted((Path(__file__).parents[2] / "generated").glob("sm_*/*/*.cu"))
MOST_LINES = 250
"""Before the first role."""


def first_role(text: str) -> int:
    """The number of the line, from 1, that the first role begins with."""
    lines = text.split("\n")
    return next(i for i, line in enumerate(lines, 1) if line.startswith("// ---- role: "))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_first_role_comes_early(source: Path) -> None:
    assert first_role(source.read_text()) <= MOST_LINES


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_sections_come_in_the_order_in_which_a_reader_needs_them(source: Path) -> None:
    text = source.read_text()
    order = [text.index(mark) for mark in ("// Roles:", "// Barriers:", "#include", "// ---- para")]
    order += [text.index(mark) for mark in ("// ---- shared memory: ", "// ---- role: ")]
    order += [text.rindex("// ---- role: "), text.index("// ---- kernel ----")]
    assert order == sorted(order)


def test_the_first_role_is_found() -> None:
    assert first_role("// head\n// ---- role: load. One thread. ----\n// ---- role: mma ----") == 2
