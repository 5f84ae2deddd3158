"""Turns pydantic's errors about a config into one problem for each key at fault."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fa4gen.config.elsewhere import Elsewhere
from fa4gen.config.expectations import Expectations, listing, shown, similar
from fa4gen.config.yaml_positions import dotted
from fa4gen.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from fa4gen.config.elsewhere import Home
    from fa4gen.config.expectations import JsonSchema
    from fa4gen.config.yaml_positions import Document, KeyPath, Place

_WORD = re.compile(r"\w+")


def explain_errors(
    errors: Sequence[ValidationError], document: Document, schema: JsonSchema, file: str
) -> list[Problem]:
    """Return the problems in ``errors``, which validating ``document.value`` raised.

    There is one error from each model that the document may be meant for; what only some of them
    refuse is not a problem. A key that pydantic refuses in several ways (once for each branch of a
    union) gives one problem. Keys that the document already has a problem with are skipped.
    """
    data = document.value
    kinds = _refused_by_all([_kinds(error, document) for error in errors])
    expected = Expectations(schema, data)
    others = Elsewhere(schema, data)
    unknown = {path for path, detail in kinds.items() if detail["type"] == "extra_forbidden"}
    homes = {path: others.home_of(path) for path in unknown}
    missing = [path for path, detail in kinds.items() if detail["type"] == "missing"]
    suggested = _pair_misspelt({path for path in unknown if homes[path] is None}, missing)
    problems = []
    for path, detail in kinds.items():
        if path in suggested.values():
            continue  # reported at the misspelt key
        home = homes.get(path)
        if home is not None:
            problem = _key_of_another(path, home, document, file)
        elif path in unknown:
            problem = _unknown_key(path, expected, suggested.get(path), document, file)
        elif detail["type"] == "missing":
            problem = _missing_key(path, expected, document, file)
        elif detail["type"] in ("value_error", "assertion_error"):
            problem = _broken_rule(path, detail, document, file)
        else:
            problem = _wrong_value(path, expected, others, document, file)
        problems.append(problem)
    return problems


def place_of(path: KeyPath, places: Mapping[KeyPath, Place], *, value: bool) -> tuple[int, int]:
    """Return line and column of the value (else of the key) at ``path``; (0, 0) where not written.

    A path into a value that was written as something else is placed at the nearest level above.
    """
    for length in range(len(path), 0, -1):
        place = places.get(path[:length])
        if place is not None:
            return (place.value_line, place.value_column) if value else (place.line, place.column)
    return 0, 0


def _kinds(error: ValidationError, document: Document) -> dict[KeyPath, ErrorDetails]:
    """Return the first thing that ``error`` says about each place."""
    kinds: dict[KeyPath, ErrorDetails] = {}
    for detail in error.errors(include_url=False):
        path = _path_in(document.value, detail)
        if not any(path[: len(bad)] == bad for bad in document.unreadable):
            kinds.setdefault(path, detail)
    _drop_other_branches(kinds)
    return kinds


def _refused_by_all(
    models: Sequence[Mapping[KeyPath, ErrorDetails]],
) -> dict[KeyPath, ErrorDetails]:
    """Return the places that every model refuses; a wrong value says more than an unknown key."""
    common = [path for path in models[0] if all(path in kinds for kinds in models)]
    return {
        path: min((kinds[path] for kinds in models), key=lambda d: d["type"] == "extra_forbidden")
        for path in common
    }


def _path_in(data: Any, detail: ErrorDetails) -> KeyPath:
    """Return pydantic's location without the names of union branches that it mixes in."""
    path: list[str | int] = []
    value = data
    for index, part in enumerate(detail["loc"]):
        if _has(value, part):
            value = value[part]
            path.append(part)
        elif detail["type"] == "missing" and index == len(detail["loc"]) - 1:
            path.append(part)
    return tuple(path)


def _has(value: Any, part: str | int) -> bool:
    if isinstance(value, dict):
        return part in value
    return isinstance(value, list) and isinstance(part, int) and part < len(value)


def _drop_other_branches(kinds: dict[KeyPath, ErrorDetails]) -> None:
    """Keep the errors inside a mapping; drop those that it is not a number or word."""
    for path in list(kinds):
        inside = any(len(p) > len(path) and p[: len(path)] == path for p in kinds)
        if inside and path and kinds[path]["type"] not in ("value_error", "assertion_error"):
            del kinds[path]


def _pair_misspelt(unknown: set[KeyPath], missing: list[KeyPath]) -> dict[KeyPath, KeyPath]:
    """Return, for unknown keys, the missing key of the same mapping that was probably meant."""
    pairs: dict[KeyPath, KeyPath] = {}
    for path in sorted(unknown, key=str):
        candidates = {
            str(m[-1]): m for m in missing if m[:-1] == path[:-1] and m not in pairs.values()
        }
        for word in similar(str(path[-1]), candidates):
            pairs[path] = candidates[word]
    return pairs


def _unknown_key(
    path: KeyPath,
    expected: Expectations,
    meant: KeyPath | None,
    document: Document,
    file: str,
) -> Problem:
    known = expected.keys(path[:-1])
    written = document.value
    for part in path[:-1]:
        written = written[part]
    near = [str(meant[-1])] if meant else similar(str(path[-1]), known)
    where = f" in {dotted(path[:-1])}" if path[:-1] else ""
    if near and near[0] in written:
        remedy = f"Did you mean {near[0]}, which is also given? Remove one."
    elif near:
        remedy = f"Did you mean {near[0]}?"
    else:
        remedy = f"Known keys: {', '.join(known)}."
    line, column = place_of(path, document.places, value=False)
    return Problem(f"unknown key {path[-1]}{where}", remedy, file, line, column, dotted(path))


def _key_of_another(path: KeyPath, home: Home, document: Document, file: str) -> Problem:
    where = f" in {dotted(path[:-1])}" if path[:-1] else ""
    line, column = place_of(path, document.places, value=False)
    key = home.deciding_key
    return Problem(
        f"unknown key {path[-1]}{where} for {key} {document.value[key]}",
        f"It is a key of {home.words}: remove it, or change {key}.",
        file,
        line,
        column,
        dotted(path),
    )


def _missing_key(path: KeyPath, expected: Expectations, document: Document, file: str) -> Problem:
    where = f" in {dotted(path[:-1])}" if path[:-1] else ""
    line, column = place_of(path[:-1], document.places, value=False) if path[:-1] else (1, 1)
    only = expected.example(path)
    words = expected.words(path)
    remedy = f"Add {path[-1]}: {only}" if only else f"Add {path[-1]}: it can be {words}."
    return Problem(
        f"the key {path[-1]} is missing{where}", remedy, file, line, column, dotted(path)
    )


def _wrong_value(
    path: KeyPath,
    expected: Expectations,
    others: Elsewhere,
    document: Document,
    file: str,
) -> Problem:
    value = document.value
    for part in path:
        value = value[part]
    line, column = place_of(path, document.places, value=True)
    remedies = []
    unquoted = expected.unquoted(path, value)
    if unquoted is not None:
        remedies.append(f"Write {shown(unquoted)} without quotes.")
    else:
        near = [shown(item) for item in expected.nearest(path, value)]
        if len(near) == 1:
            remedies.append(f"The nearest is {near[0]}.")
        elif near:
            remedies.append(f"The nearest are {listing(near, 'and')}.")
        if expected.accepted(path, value) is None:
            remedies += others.possible(path, value)
    if note := document.notes.get(path):
        remedies.append(note)
    return Problem(
        f"{dotted(path)}: {shown(value)} is not possible; it must be {expected.words(path)}",
        " ".join(remedies),
        file,
        line,
        column,
        dotted(path),
    )


def _broken_rule(path: KeyPath, detail: ErrorDetails, document: Document, file: str) -> Problem:
    """Return the problem of a rule, placed at the first key that it names.

    A rule about one value alone names no key: it is reported under the value's own.
    """
    cause = detail.get("ctx", {}).get("error")
    message = str(cause) if cause is not None else detail["msg"]
    named = [(*path, word) for word in _WORD.findall(message)]
    at = next((p for p in named if p in document.places), path)
    line, column = place_of(at, document.places, value=True)
    text = f"{dotted(path)}: {message}" if path else message
    return Problem(text, "", file, line, column, dotted(at))
