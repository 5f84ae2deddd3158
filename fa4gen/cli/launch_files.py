"""Launch files, read by the reader of configs: places, duplicate keys, sizes and depth."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.config.text import read_text
from fa4gen.config.yaml_positions import read_document
from fa4gen.counts import counted
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.emulator.errors import EmulatorError
    from fa4gen.emulator.launch_file.model import LaunchFile
    from fa4gen.emulator.launch_file.problems import Places

_LINE = re.compile(r"line ([0-9]+): ")
MAX_BYTES = 8 << 20
MAX_PTX_BYTES = 256 << 20
MAX_SHOWN = 20
"""Problems of one file that are listed."""


@dataclass(frozen=True)
class LoadedLaunch:
    """A valid launch file, and line and column of every value in it."""

    file: LaunchFile
    places: Places


def load_launch_file(path: Path) -> LoadedLaunch:
    """Read the launch file at ``path``. Raises ConfigError and LaunchFileError."""
    return parse_launch_file(read_text(path, "launch", MAX_BYTES), shown_path(path))


def parse_launch_file(text: str, file: str = "") -> LoadedLaunch:
    """Read the text of a launch file; ``file`` is the name that messages give it.

    Raises ConfigError where it is not YAML or keys are given twice, LaunchFileError with all that
    is wrong with its values.
    """
    from fa4gen.emulator.launch_file.model import launch_file_of

    document = read_document(text, file, "launch file")
    if document.problems:
        raise ConfigError(*_first(document.problems, file))
    places = {path: (one.value_line, one.value_column) for path, one in document.places.items()}
    return LoadedLaunch(launch_file_of(document.value, places), places)


def _first(problems: Sequence[Problem], file: str) -> list[Problem]:
    """Return the first problems, and how many more there are."""
    shown = list(problems[:MAX_SHOWN])
    if len(problems) > MAX_SHOWN:
        more = counted(len(problems) - MAX_SHOWN, "problem")
        shown.append(Problem(f"and {more} more", file=file))
    return shown


def refusal(error: EmulatorError, path: Path, places: Places) -> ConfigError:
    """Turn an error of the emulator's about a file into one of the command line's, with its place.

    ``places`` are those of the launch file.
    """
    from fa4gen.emulator.errors import LaunchError
    from fa4gen.emulator.launch_file.problems import LaunchFileError, LaunchProblem, with_places

    file = shown_path(path)
    if isinstance(error, LaunchFileError):
        problems = [
            Problem(str(one), file=file, line=one.line, column=one.column, key=one.key)
            for one in with_places(error.problems, places)
        ]
        return ConfigError(*_first(problems, file))
    problem = Problem(str(error), file=file)
    if found := _LINE.match(str(error)):
        message = str(error)[found.end() :]
        problem = replace(problem, message=message, line=int(found[1]), column=1)
    elif isinstance(error, LaunchError):
        remedy = error.remedy or "The launch file has to fit the kernel's entry."
        problem = replace(problem, remedy=remedy)
        if error.key:
            (one,) = with_places([LaunchProblem(str(error), error.key)], places)
            problem = replace(problem, line=one.line, column=one.column, key=error.key)
    return ConfigError(problem)
