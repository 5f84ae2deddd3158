"""Workflow commands of GitHub Actions: a line of output that becomes an annotation on a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fa4gen.escapes import printable

if TYPE_CHECKING:
    from fa4gen.errors import Problem


def annotation(level: Literal["error", "warning", "notice"], problem: Problem) -> str:
    """Return the line that annotates the place of ``problem``; without a place, the whole run."""
    place = {
        "file": problem.file,
        "line": str(problem.line or ""),
        "col": str(problem.column or ""),
    }
    properties = ",".join(f"{key}={_property(value)}" for key, value in place.items() if value)
    message = f"{problem.option}: {problem.message}" if problem.option else problem.message
    text = f"{message}\n{problem.remedy}" if problem.remedy else message
    return f"::{level}{' ' if properties else ''}{properties}::{_data(text)}"


def _data(text: str) -> str:
    """Escape the message: GitHub decodes these three, in this order of need."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property, where colon and comma would end it."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
