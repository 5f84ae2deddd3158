"""Sweep files: a base config and a matrix of values, expanded to configs.

::

    base: ../attention/sm_90a/d128_causal_bf16.yaml   # or a shipped name, or the keys themselves
    matrix:                                           # all values with all others
      depth: [64, 128]
      mask: [none, causal, {sliding_window: 1024}]
    exclude:                                          # drops what holds all of an entry's values
      - {depth: 64, mask: none}
    include:                                          # more keys for what matches, or more cases
      - {mask: causal, scheduler: static}
      - {depth: 256}

The rules are those of a GitHub Actions matrix: see ``sweep_matrix``. A varied value replaces the
base's whole value of that key. Without ``matrix`` each include entry is a case, and may have a
``name``: FILE/NAME is then the path of a config. Other cases are called by the sweep and by what
varies, shapes_d64_causal: the sweep's ``name``, else its file's stem; an inline base's ``name``
goes before either.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fa4gen.config.layers import relocated
from fa4gen.config.load import validate_document
from fa4gen.config.paths import shown_path
from fa4gen.config.sweep_file import SweepBase, SweepFile, below, position_in, read_sweep
from fa4gen.config.sweep_matrix import Combination, include, matches, product
from fa4gen.config.sweep_names import case_names
from fa4gen.config.text import read_text
from fa4gen.config.yaml_positions import Document, KeyPath, read_document
from fa4gen.designs.registry import validated
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import ModelError
from fa4gen.yaml_words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_CASES = 10_000
"""More are taken for an oversight: they would be weeks of compiling."""


@dataclass(frozen=True)
class SweepCase:
    """One config of a sweep."""

    name: str
    config: Mapping[str, Any]
    """The keys as a config file would hold them, ``name`` among them."""
    varied: Mapping[str, Any]
    """The keys that the sweep sets."""
    problems: tuple[Problem, ...]
    """Why the schema refuses it; empty for a valid config."""
    line: int
    """Its place in the sweep file."""
    column: int


@dataclass(frozen=True)
class Sweep:
    """An expanded sweep. Its cases are valid or say why not; their order never changes."""

    name: str
    path: Path
    cases: tuple[SweepCase, ...]


def expand_sweep(path: str | Path) -> Sweep:
    """Read the sweep file at ``path`` and expand it.

    Raises ConfigError, with all problems, for a file that is not a sweep, for a base that cannot be
    read, and for a sweep that expands to nothing. A case that the schema refuses is kept, with the
    reason; a sweep of which every case is refused is an error.
    """
    path = Path(path)
    file = shown_path(path)
    document = read_document(read_text(path, "sweep"), file)
    parts = read_sweep(document, path)
    cases = tuple(
        _case(name, combination, parts.base, document, file)
        for name, combination in _named(parts, document, file)
    )
    _refuse_equal(cases, file)
    _refuse_all_wrong(cases)
    return Sweep(parts.name, path, cases)


def _named(parts: SweepFile, document: Document, file: str) -> list[tuple[str, Combination]]:
    """Return the sweep's combinations with the names of their cases."""
    combinations = _combine(parts, document, file)
    varied = [
        {key: value for key, value in one.values.items() if key != "name"} for one in combinations
    ]
    made = case_names(parts.base.name, varied)
    return [
        (str(one.values.get("name", name)), one)
        for name, one in zip(made, combinations, strict=True)
    ]


def _combine(parts: SweepFile, document: Document, file: str) -> list[Combination]:
    size = 1 if parts.matrix else 0
    for values in parts.matrix.values():
        size *= len(values)
    if size > MAX_CASES:
        sizes = " * ".join(str(len(values)) for values in parts.matrix.values())
        line, column = position_in(document.places, ("matrix",))
        raise ConfigError(
            Problem(
                f"the matrix has {sizes} = {size} combinations; {MAX_CASES} are the most",
                "Split it into several sweeps.",
                file,
                line,
                column,
                "matrix",
            )
        )
    combinations = product(parts.matrix)
    problems = []
    for index, entry in enumerate(parts.exclude):
        if not any(matches(combination.values, entry) for combination in combinations):
            line, column = position_in(document.places, ("exclude", index))
            problems.append(
                Problem(
                    f"exclude[{index}] {shown(entry)} matches no combination of the matrix",
                    "Correct its values, or remove it.",
                    file,
                    line,
                    column,
                    f"exclude[{index}]",
                )
            )
    if problems:
        raise ConfigError(*problems)
    kept = [
        combination
        for combination in combinations
        if not any(matches(combination.values, entry) for entry in parts.exclude)
    ]
    result = include(kept, parts.matrix, parts.include)
    if not result:
        line, column = position_in(document.places, ("exclude",), at_key=True)
        raise ConfigError(
            Problem(
                f"the sweep expands to nothing: exclude drops all {len(combinations)} combinations",
                "Remove or narrow an exclude entry.",
                file,
                line,
                column,
                "exclude",
            )
        )
    return result


def _case(
    name: str, combination: Combination, base: SweepBase, document: Document, file: str
) -> SweepCase:
    config = {**base.keys, **combination.values, "name": name}
    line, column = position_in(document.places, combination.origin, at_key=True)
    return SweepCase(
        name,
        config,
        {key: value for key, value in combination.values.items() if key != "name"},
        tuple(_schema_problems(config, combination, base, document, file)),
        line,
        column,
    )


def _schema_problems(
    config: dict[str, Any],
    combination: Combination,
    base: SweepBase,
    document: Document,
    file: str,
) -> list[Problem]:
    """Return why the schema refuses ``config``, each placed where the value was written."""
    try:
        validated(config)
    except ModelError:
        pass  # and now once more with places
    else:
        return []
    try:
        validate_document(_case_document(config, combination, base, document, file), file, "")
    except ConfigError as error:
        return [_in_base(problem, combination, base) for problem in error.problems]
    return []


def _case_document(
    config: dict[str, Any],
    combination: Combination,
    base: SweepBase,
    document: Document,
    file: str,
) -> Document:
    """Return ``config`` with the places of its values in the sweep's file."""
    places = dict(base.places) if base.file == file else {}
    notes: dict[KeyPath, str] = below(document.notes, ("base",))
    for key, source in combination.sources.items():
        places = {path: place for path, place in places.items() if path[:1] != (key,)}
        for rest, place in below(document.places, source).items():
            places[key, *rest] = place
        places[key,] = document.places[source]
        notes |= {(key, *rest): note for rest, note in below(document.notes, source).items()}
        if source in document.notes:
            notes[key,] = document.notes[source]
    return Document(config, places, notes, (), frozenset())


def _in_base(problem: Problem, combination: Combination, base: SweepBase) -> Problem:
    """Place a problem with a key of a base file in that file."""
    key = problem.key.partition(".")[0]
    place = base.places.get((key,))
    if place is None or key in combination.values or problem.file == base.file:
        return problem
    placed = dataclasses.replace(
        problem, file=base.file, line=place.value_line, column=place.value_column
    )
    return relocated(placed, base.origins)


def _refuse_equal(cases: Sequence[SweepCase], file: str) -> None:
    first: dict[str, SweepCase] = {}
    problems = []
    for case in cases:
        if case.name in first and case.varied != first[case.name].varied:
            problems.append(
                Problem(
                    f"two cases are called {case.name}",
                    "Give one of them another name.",
                    file,
                    case.line,
                    case.column,
                    "name",
                )
            )
        elif case.name in first:
            values = ", ".join(f"{key}: {shown(value)}" for key, value in case.varied.items())
            problems.append(
                Problem(
                    f"the same case twice: {values}",
                    "Remove the include entry that repeats it.",
                    file,
                    case.line,
                    case.column,
                )
            )
        first.setdefault(case.name, case)
    if problems:
        raise ConfigError(*problems)


def _refuse_all_wrong(cases: Sequence[SweepCase]) -> None:
    """Refuse a sweep in which nothing can run: most likely its base is wrong."""
    if any(not case.problems for case in cases):
        return
    unique = dict.fromkeys(problem for case in cases for problem in case.problems)
    raise ConfigError(
        Problem(
            f"none of the sweep's {len(cases)} cases is a valid config",
            "Correct the problems below.",
            next(iter(unique)).file,
        ),
        *unique,
    )
