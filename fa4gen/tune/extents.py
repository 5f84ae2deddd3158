"""Extents of a problem as files give them: whole numbers by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def read_extents(
    given: Mapping[str, Any], names: Sequence[str], defaults: Mapping[str, int], largest: int
) -> dict[str, int]:
    """Return a whole number from 1 to ``largest`` for each of ``names``.

    Raises ConfigError, with all problems, for one that is missing without a default, is unknown, or
    is out of range.
    """
    problems = []
    for name in given:
        if name not in names:
            problems.append(
                Problem(f"{name!r} is not an extent", f"The extents are {', '.join(names)}.")
            )
    found: dict[str, int] = {}
    for name in names:
        value = given.get(name, defaults.get(name))
        if value is None:
            problems.append(Problem(f"{name} is missing", f"Give {', '.join(names)}."))
        elif isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
            problems.append(
                Problem(f"{name}: {value!r} is not a whole number from 1 to {largest}", key=name)
            )
        else:
            found[name] = value
    if problems:
        raise ConfigError(*problems)
    return found
