"""Errors in a launch file, by the key that is at fault."""

from __future__ import annotations

from dataclasses import dataclass

from fa4gen.emulator.errors import EmulatorError


@dataclass(frozen=True, slots=True)
class LaunchProblem:
    """One thing wrong with a launch file, or with a file that it refers to."""

    message: str
    key: str = ""
    """The key at fault, such as ``arguments[0].shape``, or an option of the command line."""

    def __str__(self) -> str:
        return f"{self.key}: {self.message}" if self.key else self.message


class LaunchFileError(EmulatorError):
    """A launch file, or a file that it refers to, with an error."""

    def __init__(self, *problems: LaunchProblem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems
