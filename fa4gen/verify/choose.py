"""Cases chosen by the globs of a command line."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fa4gen.verify.verdict import NamedCase

AnyCase = TypeVar("AnyCase", bound="NamedCase")


def select_cases(cases: Iterable[AnyCase], patterns: Sequence[str]) -> tuple[AnyCase, ...]:
    """Return the cases with a name that matches one of the globs; all without any."""
    return tuple(
        case
        for case in cases
        if not patterns or any(fnmatchcase(case.name, pattern) for pattern in patterns)
    )


def check_patterns(cases: Iterable[NamedCase], patterns: Sequence[str]) -> None:
    """Raise ConfigError for globs that match none of ``cases``."""
    names = {case.name for case in cases}
    problems = [
        Problem(
            f"no case is named {pattern}",
            "--list-cases shows the names; a pattern may hold * and ?, as in 'gqa/*'.",
        )
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    if problems:
        raise ConfigError(*problems)
