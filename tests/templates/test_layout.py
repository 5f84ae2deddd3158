"""How a generated kernel is laid out: parameters, memory and rings at the head, then its roles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from fa4gen.config.find import shipped_configs
from tests.shipped import files_of

if TYPE_CHECKING:
    from pathlib import Path

SOURCES: Final = shipped_configs()
WITH_ROLES: Final = [path for path in SOURCES if "merge" not in path.parts]
"""Kernels of several roles; in those that merge all warps do the same."""
MOST_LINES = 275
"""Before the first role."""


def first_role(text: str) -> int:
    """The number of the line, from 1, that the first role begins with."""
    lines = text.split("\n")
    return next(i for i, line in enumerate(lines, 1) if line.startswith("// ---- role: "))


@pytest.mark.parametrize("source", WITH_ROLES, ids=lambda path: path.stem)
def test_the_first_role_comes_early(source: Path) -> None:
    assert first_role(files_of(source)[".cu"]) <= MOST_LINES


@pytest.mark.parametrize("source", WITH_ROLES, ids=lambda path: path.stem)
def test_sections_come_in_the_order_in_which_a_reader_needs_them(source: Path) -> None:
    text = files_of(source)[".cu"]
    order = [text.index(mark) for mark in ("// Roles:", "// Barriers:", "#include", "// ---- para")]
    order += [text.index(mark) for mark in ("// ---- shared memory: ", "// ---- role: ")]
    order += [text.rindex("// ---- role: "), text.index("// ---- kernel ----")]
    assert order == sorted(order)


def test_the_first_role_is_found() -> None:
    assert first_role("// head\n// ---- role: load. One thread. ----\n// ---- role: mma ----") == 2


LEFTOVER = re.compile(
    r"if (?:constexpr )?\((?:true|false|\d+)\)|const int32 begin = 0;"
    r"|for \(\w+ (\w+) = 0; \1 < 1; |while \(false\)|[?] true : |[?] false : "
)
"""Text that a template's choice by the plan would have removed."""


def code_of(source: Path) -> str:
    return files_of(source)[".cu"] + files_of(source)["_device.cuh"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_nothing_is_decided_that_the_plan_has_decided(source: Path) -> None:
    text = code_of(source)
    assert LEFTOVER.search(text) is None
    if "__cluster_dims__(2" not in text:  # rings of one CTA are there in kernels of pairs as well
        assert not re.search(r"if (?:constexpr )?\(kCtaGroup [=!]=", text)


def test_leftovers_are_found() -> None:
    for line in (
        "if constexpr (true) {",
        "const int32 begin = 0;",
        "for (int32 i = 0; i < 1; ++i)",
    ):
        assert LEFTOVER.search(line), line
    assert not LEFTOVER.search("for (int32 i = 0; i < 16; ++i) if (first) begin = 0;")
