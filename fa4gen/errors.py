"""Errors that a user can cause, each with the place, the expectation and the suggested fix.

The command line prints them without a traceback and ends with ``exit_status``
(0 done, 1 compile or verification failed, 2 usage or config, 3 generated files not
current, 4 a needed capability is absent).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fa4gen.escapes import one_line

_UNINDENTED = re.compile(r"\n(?=\S)")


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input, at a place in a file where there is one.

    ``line`` and ``column`` count from 1; 0 means that the place is not known. ``option`` is what
    the command line says instead of ``file``, such as ``--set depth=64``.
    """

    message: str
    remedy: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    key: str = ""
    option: str = ""

    @property
    def place(self) -> str:
        """``file:line:column``, or as much of it as is known; ``option (file)`` with an option."""
        file, option = one_line(self.file), one_line(self.option)
        if option:
            return f"{option} ({file})" if file else option
        parts = [file] if file else []
        if self.line:
            parts += [str(self.line), str(self.column)]
        return ":".join(parts)

    def __str__(self) -> str:
        message = _UNINDENTED.sub("\n  ", self.message)  # or a line might look like another problem
        text = f"{self.place}: {message}" if self.place else message
        return f"{text}\n  {self.remedy}" if self.remedy else text


class Fa4genError(Exception):
    """Base of every error that is reported to the user as a message."""

    exit_status = 1

    def __init__(self, *problems: Problem | str) -> None:
        self.problems = tuple(p if isinstance(p, Problem) else Problem(p) for p in problems)
        super().__init__("\n".join(str(p) for p in self.problems))


class ConfigError(Fa4genError):
    """A config, sweep or command line that cannot work."""

    exit_status = 2


class TemplateError(Fa4genError):
    """A template that failed to render; names template file, line and config key."""

    exit_status = 2


class CompileError(Fa4genError):
    """The compiler refused a kernel, or its log shows a defect that the lint forbids."""


class NotCurrentError(Fa4genError):
    """Generated files on disk are not what their configs render to."""

    exit_status = 3


class MissingCapabilityError(Fa4genError):
    """A compiler, GPU or library that the command needs is absent."""

    exit_status = 4


class ArgumentError(Fa4genError, ValueError):
    """A launcher refused an argument; the message names it, the expectation and the value."""

    exit_status = 2
