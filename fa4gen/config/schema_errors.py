"""Turns what models refuse of a document into one problem for each key at fault."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from fa4gen.config.expectations import Expectations, similar
from fa4gen.config.other_models import OtherModels
from fa4gen.config.synonyms import key_for, line_for, value_for
from fa4gen.config.yaml_positions import dotted
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import ModelError, Strict
from fa4gen.strict.json_schema import model_schema
from fa4gen.yaml_words import listing, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.config.expectations import JsonSchema
    from fa4gen.config.other_models import Home
    from fa4gen.config.yaml_positions import Document, KeyPath, Place
    from fa4gen.strict import Fault

Model = TypeVar("Model", bound=Strict)
_WORD = re.compile(r"\w+")


def explain_faults(
    refused: Sequence[Sequence[Fault]], document: Document, schema: JsonSchema, file: str
) -> list[Problem]:
    """Return the problems of ``document.value`` that follow from what models found in it.

    There are the faults for each model that the document may be meant for; what only some of them
    refuse is not a problem. Keys that the document already has a problem with are skipped.
    """
    data = document.value
    faults = _refused_by_all([_by_place(faults, document) for faults in refused])
    expected = Expectations(schema, data)
    others = OtherModels(schema, data)
    unknown = {path for path, fault in faults.items() if fault.kind == "unknown"}
    known = {path for path in unknown if path[-1] in expected.keys(path[:-1])}
    homes = {path: others.home_of(path) for path in unknown - known}
    missing = [path for path, fault in faults.items() if fault.kind == "missing"]
    kernel = data.get("kernel")
    suggested = _pair_misspelt(
        {path for path in unknown if homes.get(path) is None}, missing, kernel
    )
    problems = []
    for path, fault in faults.items():
        if path in suggested.values():
            continue  # reported at the misspelt key
        home = homes.get(path)
        if path in known:
            problem = _one_too_many(path, document, file)
        elif home is not None:
            problem = _key_of_another(path, home, document, file)
        elif path in unknown:
            problem = _unknown_key(path, expected, suggested.get(path), document, file)
        elif fault.kind == "missing":
            problem = _missing_key(path, expected, document, file)
        elif fault.kind == "rule":
            problem = _broken_rule(path, fault, document, file)
        elif fault.kind == "fixed":
            problem = _another_value(path, fault, document, file)
        else:
            problem = _wrong_value(path, expected, others, document, file)
        problems.append(problem)
    return problems


def read_model(document: Document, model: type[Model], file: str) -> Model:
    """Return what ``document``, a mapping, describes; ``file`` is what messages call it.

    Raises ConfigError with the problems of the document and of its content, from top to bottom.
    """
    problems = list(document.problems)
    try:
        made = model.model_validate(document.value)
    except ModelError as error:
        problems += explain_faults([error.faults], document, model_schema(model), file)
    if problems:
        raise ConfigError(*sorted(problems, key=lambda problem: (problem.line, problem.column)))
    return made


def place_of(path: KeyPath, places: Mapping[KeyPath, Place], *, value: bool) -> tuple[int, int]:
    """Return line and column of the value (else of the key) at ``path``; (0, 0) where not written.

    A path into a value that was written as something else is placed at the nearest level above.
    """
    for length in range(len(path), 0, -1):
        place = places.get(path[:length])
        if place is not None:
            return (place.value_line, place.value_column) if value else (place.line, place.column)
    return 0, 0


def _by_place(faults: Sequence[Fault], document: Document) -> dict[KeyPath, Fault]:
    """Return the first fault at each place that the document has no problem with yet."""
    found: dict[KeyPath, Fault] = {}
    for fault in faults:
        path = fault.path
        if not any(path[: len(bad)] == bad for bad in document.unreadable):
            found.setdefault(path, fault)
    return found


def _refused_by_all(models: Sequence[Mapping[KeyPath, Fault]]) -> dict[KeyPath, Fault]:
    """Return the places that every model refuses; a wrong value says more than an unknown key."""
    common = [path for path in models[0] if all(path in faults for faults in models)]
    return {
        path: min((faults[path] for faults in models), key=lambda fault: fault.kind == "unknown")
        for path in common
    }


def _pair_misspelt(
    unknown: set[KeyPath], missing: list[KeyPath], kernel: object
) -> dict[KeyPath, KeyPath]:
    """Return, for unknown keys, the missing key of the same mapping that was probably meant."""
    pairs: dict[KeyPath, KeyPath] = {}
    for path in sorted(unknown, key=str):
        candidates = {
            str(m[-1]): m for m in missing if m[:-1] == path[:-1] and m not in pairs.values()
        }
        synonym = key_for(str(path[-1]), kernel)
        for word in [synonym] if synonym in candidates else similar(str(path[-1]), candidates):
            pairs[path] = candidates[str(word)]
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
    line_here = meant_key = None
    if not path[:-1]:
        word, kernel = str(path[-1]), written.get("kernel")
        line_here, meant_key = line_for(word, written[word], kernel), key_for(word, kernel)
    if meant_key in written:
        remedy = f"It is {meant_key} here, which is also given. Remove one."
    elif line_here is not None:
        remedy = line_here
    elif near and near[0] in written:
        remedy = f"Did you mean {near[0]}, which is also given? Remove one."
    elif near:
        remedy = f"Did you mean {near[0]}?"
    else:
        remedy = f"Known keys: {', '.join(known)}."
    line, column = place_of(path, document.places, value=False)
    return Problem(f"unknown key {path[-1]}{where}", remedy, file, line, column, dotted(path))


def _one_too_many(path: KeyPath, document: Document, file: str) -> Problem:
    """Return the problem of a key of another branch than that of the keys next to it."""
    value = document.value
    for part in path[:-1]:
        value = value[part]
    others = listing([str(key) for key in value if key != path[-1]], "and")
    line, column = place_of(path, document.places, value=False)
    text = f"{dotted(path[:-1])}: {path[-1]} cannot be given beside {others}"
    return Problem(text, "Remove one.", file, line, column, dotted(path))


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
    because = expected.reason(path).removesuffix(".")
    remedy = (
        f"Add {path[-1]}: {only}{'.' * bool(because)}{because}"
        if only
        else f"Add {path[-1]}: it can be {words}."
    )
    return Problem(
        f"the key {path[-1]} is missing{where}", remedy, file, line, column, dotted(path)
    )


def _wrong_value(
    path: KeyPath,
    expected: Expectations,
    others: OtherModels,
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
        meant = value_for(str(path[-1]), value) if len(path) == 1 else None
        if meant is not None and expected.accepted(path, meant) is not None:
            near = [meant]
        else:
            near = [shown(item) for item in expected.nearest(path, value)]
        if len(near) == 1:
            remedies.append(f"The nearest is {near[0]}.")
        elif near:
            remedies.append(f"The nearest are {listing(near, 'and')}.")
        if expected.accepted(path, value) is None:
            remedies += others.possible(path, value)
        remedies += [words] if (words := expected.reason(path).strip()) and len(path) == 1 else []
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


def _another_value(path: KeyPath, fault: Fault, document: Document, file: str) -> Problem:
    """Return the problem of a key that has one value, or none, with the other keys."""
    line, column = place_of(path, document.places, value=True)
    return Problem(fault.message, fault.remedy, file, line, column, dotted(path))


def _broken_rule(path: KeyPath, fault: Fault, document: Document, file: str) -> Problem:
    """Return the problem of a rule, placed at the first key that it names.

    A rule about one value alone names no key: it is reported under the value's own.
    """
    named = [(*path, word) for word in _WORD.findall(fault.message)]
    at = next((p for p in named if p in document.places), path)
    line, column = place_of(at, document.places, value=True)
    place = document.places.get(at)
    if fault.character and place is not None and place.text_column:
        column = place.text_column + fault.character - 1
    text = f"{dotted(path)}: {fault.message}" if path else fault.message
    return Problem(text, "", file, line, column, dotted(at))
