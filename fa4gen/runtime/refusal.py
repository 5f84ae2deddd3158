"""How a wrong argument is reported: its name, what was expected, what was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.errors import ArgumentError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable


def wrong(argument: str, got: str, expected: str, remedy: str = "") -> Problem:
    """Describe one wrong argument."""
    return Problem(f"{argument}: expected {expected}, got {got}", remedy=remedy, key=argument)


def refusal(argument: str, got: str, expected: str, *, remedy: str = "") -> ArgumentError:
    """Return the error for a single wrong argument."""
    return ArgumentError(wrong(argument, got, expected, remedy))


def refuse(problems: Iterable[Problem]) -> None:
    """Raise ArgumentError with all the problems, if there are any."""
    found = list(problems)
    if found:
        raise ArgumentError(*found)
