from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.render.text_check import first_breach


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("a \nb\n", 1, "blanks at the end"),
        ("a\n\t\nb\n", 2, "blanks at the end"),
        ("a\n\n\nb\n", 3, "two blank lines"),
        ("\na\n", 1, "begins with a blank line"),
        ("a\n\n", 2, "ends with a blank line"),
        ("a", 1, "no newline"),
        ("", 1, "begins with a blank line"),
        ("a\r\nb\n", 1, "carriage return"),
        ("int a[] = {{1}};\n", 1, "'{{'"),
        ("a\n{% if x %}\n", 2, "'{%'"),
        ("a\n{%- if x %}\n", 2, "'{%-'"),
        ("{# note #}\n", 1, "'{#'"),
    ],
)
def test_breaches_are_found_at_their_line(text: str, line: int, what: str) -> None:
    breach = first_breach(text)
    assert breach is not None
    assert breach.line == line
    assert what in breach.what
    assert breach.remedy


def test_ptx_operand_lists_are_not_template_syntax() -> None:
    assert first_breach('"{%0,%1}, {%2, %3};"\nif (x) { a[i] = {}; }\n') is None


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.sampled_from(["x", "  y;", "// z"]), min_size=1), min_size=1))
def test_paragraphs_apart_by_one_blank_line_pass(paragraphs: list[list[str]]) -> None:
    assert first_breach("\n\n".join("\n".join(lines) for lines in paragraphs) + "\n") is None
