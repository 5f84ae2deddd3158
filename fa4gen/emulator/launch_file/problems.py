"""Errors in a launch file, with their positions."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from fa4gen.emulator.errors import EmulatorError

_EXPECTED: Final = {
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "string_type": "text",
    "bool_type": "true or false",
    "finite_number": "a finite number",
}
_BOUNDS: Final = {
    "greater_than_equal": ("ge", "{} or more"),
    "less_than_equal": ("le", "at most {}"),
    "too_short": ("min_length", "{} or more entries"),
}


Places = Mapping[tuple[str | int, ...], tuple[int, int]]
"""Line and column of values by the keys and list indices that lead to them; () is the file."""
NO_PLACES: Final[Places] = MappingProxyType({})
_SHOWN: Final = 60  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class LaunchProblem:
    """One thing wrong with a launch file; ``line`` and ``column`` count from 1, 0 if unknown."""

    message: str
    key: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.key}: {self.message}" if self.key else self.message


class LaunchFileError(EmulatorError):
    """A launch file, or a file that it refers to, with an error."""

    def __init__(self, *problems: LaunchProblem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def launch_problems(
    error: ValidationError,
    data: dict[str, Any],
    places: Places,
    known_keys: Callable[[Sequence[str | int]], Sequence[str]],
) -> list[LaunchProblem]:
    """Return the refusals of a model, by key, in the words of the file.

    ``known_keys`` returns the keys that are allowed next to one of pydantic's.
    """
    expected: dict[tuple[str | int, ...], list[str]] = {}
    said: dict[tuple[str | int, ...], str] = {}
    for item in error.errors():
        path = _path(item["loc"], data)
        kind, context = item["type"], item.get("ctx", {})
        if kind == "extra_forbidden":
            said[path] = _unknown_key(str(path[-1]), known_keys(item["loc"]))
        elif kind == "missing":
            missing = str(item["loc"][-1])
            said[(*path, missing)] = f"{missing} is missing"
        elif kind == "value_error":
            said[path] = str(context["error"])
        elif kind == "kind":
            said[path] = item["msg"]
        elif kind == "literal_error":
            expected.setdefault(path, []).append(f"one of {context['expected']}")
        elif kind == "too_long":
            said[path] = f"expected at most {context['max_length']} entries"
        elif kind in _BOUNDS:
            bound, words = _BOUNDS[kind]
            expected.setdefault(path, []).append(words.format(context[bound]))
        else:
            expected.setdefault(path, []).append(_EXPECTED.get(kind, item["msg"]))
    for path, wanted in expected.items():
        if path not in said:
            said[path] = f"expected {' or '.join(dict.fromkeys(wanted))}{_given(path, data)}"
    return [
        LaunchProblem(message, _key(path), *_place(path, places)) for path, message in said.items()
    ]


def with_places(problems: Sequence[LaunchProblem], places: Places) -> list[LaunchProblem]:
    """Problems with line and column of their keys where these are not known yet."""
    placed = []
    for one in problems:
        path = [
            int(number) if number else word
            for word, number in re.findall(r"([\w-]+)|\[(\d+)\]", one.key)
        ]
        known = one.line or not one.key or one.key.startswith("--")
        line, column = (one.line, one.column) if known else _place(path, places)
        placed.append(replace(one, line=line, column=column))
    return placed


def _path(loc: Sequence[str | int], data: Any) -> tuple[str | int, ...]:
    """The keys on the way, without those that pydantic adds: alternatives, kinds of a value."""
    path: list[str | int] = []
    here = data
    for index, part in enumerate(loc):
        if index == 2 and loc[0] in ("arguments", "arrays", "variables"):
            continue  # the alternative
        if isinstance(here, dict) and str(part) in here:
            part = str(part)
        elif not (isinstance(here, list) and isinstance(part, int) and part < len(here)):
            break
        path.append(part)
        here = here[part]
    return tuple(path)


def _unknown_key(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
    return f"no such key{hint}"


def _given(path: Sequence[str | int], data: Any) -> str:
    for part in path:
        data = data[part]
    if isinstance(data, (dict, list)):
        return f", not a {'mapping' if isinstance(data, dict) else 'list'}"
    if isinstance(data, float) and not math.isfinite(data):
        return f", not {data}"
    shown = repr(data)
    return f", not {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '...'}"


def _key(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        if text and str(part).isdecimal():  # an index, or an offset in bytes
            text += f"[{part}]"
        else:
            text += f".{part}" if text else str(part)
    return text


def _place(path: Sequence[str | int], places: Places) -> tuple[int, int]:
    """Line and column of the value at ``path``, or of the mapping that would hold it."""
    here: tuple[str | int, ...] = ()
    for part in path:
        # keys are text, also those that count bytes
        found = next((one for one in ((*here, part), (*here, str(part))) if one in places), None)
        if found is None:
            break
        here = found
    return places.get(here, (0, 0))
