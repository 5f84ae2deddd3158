"""Launch files, read by the reader of configs: places, duplicate keys, sizes and depth."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.config.schema_errors import read_model
from fa4gen.config.text import read_text
from fa4gen.config.yaml_positions import KeyPath, Place, read_document
from fa4gen.counts import counted
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.emulator.errors import EmulatorError
    from fa4gen.emulator.launch_file.model import LaunchFile

Places = Mapping[KeyPath, Place]
_KEY = re.compile(r"([\w-]+)|\[(\d+)\]")
_LINE = re.compile(r"line ([0-9]+): ")
MAX_BYTES = 8 << 20
MAX_PTX_BYTES = 256 << 20
MAX_SHOWN = 20
"""Problems of one file that are listed."""


@dataclass(frozen=True)
class LoadedLaunch:
    """A valid launch file, and the place of every value in it."""

    file: LaunchFile
    places: Places


def load_launch_file(path: Path) -> LoadedLaunch:
    """Read the launch file at ``path``. Raises ConfigError."""
    return parse_launch_file(read_text(path, "launch", MAX_BYTES), shown_path(path))


def parse_launch_file(text: str, file: str = "") -> LoadedLaunch:
    """Read the text of a launch file; ``file`` is the name that messages give it.

    Raises ConfigError with all that is wrong with it.
    """
    from fa4gen.emulator.launch_file.model import LaunchFile

    document = read_document(text, file, "launch file")
    if not isinstance(document.value, dict):
        what = "a launch file is a mapping with the keys block, arguments, ..."
        problem = Problem(what, "Begin with block: 128.", file, 1, 1)
        raise ConfigError(*_first(document.problems, file), problem)
    try:
        return LoadedLaunch(read_model(document, LaunchFile, file), document.places)
    except ConfigError as error:
        raise ConfigError(*_first(error.problems, file)) from error


def _first(problems: Sequence[Problem], file: str) -> list[Problem]:
    """Return the first problems of the file, and how many more there are."""
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
    from fa4gen.emulator.launch_file.problems import LaunchFileError

    file = shown_path(path)
    if isinstance(error, LaunchFileError):
        problems = [
            Problem(str(one), "", file, *_place(one.key, places), one.key) for one in error.problems
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
            line, column = _place(error.key, places)
            problem = replace(problem, line=line, column=column, key=error.key)
    return ConfigError(problem)


def _place(key: str, places: Places) -> tuple[int, int]:
    """Return line and column of the value of ``key``, or of the mapping that would hold it.

    (0, 0) for an option of the command line, and for no key.
    """
    if not key or key.startswith("--"):
        return 0, 0
    here: KeyPath = ()
    for word, number in _KEY.findall(key):
        # keys are text, also those that count bytes
        steps = [(*here, word)] if word else [(*here, int(number)), (*here, number)]
        found = next((path for path in steps if path in places), None)
        if found is None:
            break
        here = found
    place = places.get(here)
    return (place.value_line, place.value_column) if place else (0, 0)
