"""What is wrong with a launch file, and where."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml
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
}


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
    """A launch file, or what it refers to, that cannot work."""

    def __init__(self, *problems: LaunchProblem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def launch_problems(
    error: ValidationError,
    data: dict[str, Any],
    node: yaml.Node | None,
    known_keys: Callable[[Sequence[str | int]], Sequence[str]],
) -> list[LaunchProblem]:
    """Say what a model refused, by key, in the words of the file.

    ``node`` gives the places; ``known_keys`` the keys that may stand beside one of pydantic's.
    """
    expected: dict[tuple[str | int, ...], list[str]] = {}
    said: dict[tuple[str | int, ...], str] = {}
    for item in error.errors():
        path = _path(item["loc"], data)
        kind, context = item["type"], item.get("ctx", {})
        if kind == "extra_forbidden":
            said[path] = _unknown_key(str(path[-1]), known_keys(item["loc"]))
        elif kind == "missing":
            said[(*path[:-1], path[-1])] = f"{path[-1]} is missing"
        elif kind == "value_error":
            said[path] = str(context["error"])
        elif kind == "kind":
            said[path] = item["msg"]
        elif kind == "literal_error":
            expected.setdefault(path, []).append(f"one of {context['expected']}")
        elif kind in ("greater_than_equal", "too_short", "too_long"):
            bound = next(iter(v for k, v in context.items() if k in ("ge", "min_length")), None)
            what = "entries" if kind.startswith("too") else ""
            if kind == "too_long":
                said[path] = f"expected at most {context['max_length']} entries"
            else:
                expected.setdefault(path, []).append(f"{bound} or more {what}".strip())
        else:
            expected.setdefault(path, []).append(_EXPECTED.get(kind, item["msg"]))
    for path, wanted in expected.items():
        if path not in said:
            said[path] = f"expected {' or '.join(dict.fromkeys(wanted))}{_given(path, data)}"
    return [
        LaunchProblem(message, _key(path), *_place(path, node)) for path, message in said.items()
    ]


def with_places(problems: Sequence[LaunchProblem], text: str) -> list[LaunchProblem]:
    """Problems with line and column in the file's ``text`` where these are not known yet."""
    if not any(one.key for one in problems):  # not even YAML
        return list(problems)
    node = yaml.compose(text, yaml.SafeLoader)
    placed = []
    for one in problems:
        path = [
            int(number) if number else word
            for word, number in re.findall(r"([\w-]+)|\[(\d+)\]", one.key)
        ]
        known = one.line or not one.key or one.key.startswith("--")
        placed.append(one if known else LaunchProblem(one.message, one.key, *_place(path, node)))
    return placed


def _path(loc: Sequence[str | int], data: Any) -> tuple[str | int, ...]:
    """The keys on the way, without the names of a model's alternatives."""
    path: list[str | int] = []
    here = data
    for index, part in enumerate(loc):
        alternative = index == 2 and loc[0] in ("arguments", "arrays", "variables")
        inside = (isinstance(here, dict) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        )
        if alternative:
            continue
        if inside:
            path.append(part)
            here = here[part]
        elif isinstance(here, dict) and index == len(loc) - 1:
            path.append(part)  # a key that is missing
    return tuple(path)


def _unknown_key(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
    return f"no such key{hint}"


def _given(path: Sequence[str | int], data: Any) -> str:
    for part in path:
        data = data[part]
    if isinstance(data, str):
        try:
            float(data)
        except ValueError:
            return f", not {data!r}"
        return f", not the text {data!r}: YAML takes 1e-5 for text, write 1.0e-5"
    return f", not {data!r}" if not isinstance(data, (dict, list)) else ""


def _key(path: Sequence[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _place(path: Sequence[str | int], node: yaml.Node | None) -> tuple[int, int]:
    """Line and column of the value at ``path``, or of what would hold it."""
    for part in path:
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            found = next((value for key, value in node.value if key.value == str(part)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            found = node.value[part] if part < len(node.value) else None
        if found is None:
            break
        node = found
    return (node.start_mark.line + 1, node.start_mark.column + 1) if node is not None else (0, 0)
