"""Rules for every generated file; a violation is an error of its template, never repaired here."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Not "{%" alone: inline PTX writes operand lists as "{%0, %1}".
_LEFTOVER = re.compile(r"\{\{|\{%[-+]?\s|\s[-+]?%\}|\{#|#\}")


@dataclass(frozen=True)
class Breach:
    """A line (from 1) of a rendered text that breaks a rule."""

    line: int
    what: str
    remedy: str


def first_breach(text: str) -> Breach | None:
    """Return the first breach of the rules in ``text``, or None.

    The rules: no blanks at line ends, no two blank lines in a row and none at either end, no
    template syntax left, only Unix line ends, one newline at the end.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if breach := _line_breach(lines, number, line):
            return breach
    if not text.endswith("\n"):
        return Breach(len(lines), "no newline at the end of the file", "End the template with one.")
    return None


def _line_breach(lines: list[str], number: int, line: str) -> Breach | None:
    if "\r" in line:
        return Breach(number, "a carriage return", "Keep Unix line ends in templates.")
    if line != line.rstrip():
        return Breach(number, "blanks at the end of a line", "Use {%- or move the text.")
    if leftover := _LEFTOVER.search(line):
        what = f"template syntax {leftover[0].strip()!r} in the output"
        return Breach(number, what, "Write a space between C++ braces: { {.")
    if line == "" and number == 1:
        return Breach(number, "the file begins with a blank line", "Remove it from the template.")
    is_last = number == len(lines)
    if line == "" and not is_last and lines[number - 2] == "":
        return Breach(number, "two blank lines in a row", "Move one inside the condition.")
    if line == "" and is_last and number > 1 and lines[number - 2] == "":
        return Breach(number - 1, "the file ends with a blank line", "Remove it from the template.")
    return None
