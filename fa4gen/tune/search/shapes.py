"""The problems to tune for: from files, or from the command line.

A YAML file is a list of problems, each a text ("16x4096x14336") or a mapping of extents; or a
mapping of extents to lists of values, with ``layers``, a list of mappings of the other extents, as
a model has them: every layer with every combination of the lists. A CSV file has the extents as
columns; other columns are left out.
"""

from __future__ import annotations

import csv
from itertools import product
from typing import TYPE_CHECKING, Any

from fa4gen.config.paths import shown_path
from fa4gen.config.text import read_text
from fa4gen.config.yaml_positions import read_document
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from fa4gen.tune.family import Family

LAYERS = "layers"
NAME = "name"
"""The key of a layer's name, for readers."""
MOST = 10_000
"""Problems of one run."""


def read_problems(family: Family, texts: Sequence[str], file: Path | None) -> list[Any]:
    """Return the problems of ``texts`` and of ``file``, each once.

    Raises ConfigError for an invalid file or text, and without any problem.
    """
    found = [family.parse_problem(text) for text in texts]
    if file is not None:
        found += _read_file(family, file)
    unique = list(dict.fromkeys(found))
    if not unique:
        raise ConfigError(
            Problem("there is no problem to tune for", "Give --problem SIZE, or --shapes FILE.")
        )
    if len(unique) > MOST:
        raise ConfigError(Problem(f"{len(unique)} problems are too many: at most {MOST}"))
    return unique


def _read_file(family: Family, file: Path) -> list[Any]:
    shown = shown_path(file)
    text = read_text(file, "shapes")
    if file.suffix.lower() == ".csv":
        rows = _csv_rows(family, text, shown)
    else:
        document = read_document(text, shown)
        if document.problems:
            raise ConfigError(*document.problems)
        rows = [
            (_line(document.places, number), entry)
            for number, entry in enumerate(_entries(document.value, shown))
        ]
    found, problems = [], []
    for line, entry in rows:
        try:
            found.append(
                family.parse_problem(entry) if isinstance(entry, str) else family.problem(entry)
            )
        except ConfigError as error:
            problems += [
                Problem(problem.message, problem.remedy, shown, line, 1)
                for problem in error.problems
            ]
    if problems:
        raise ConfigError(*problems)
    return found


def _line(places: Mapping[Any, Any], number: int) -> int:
    place = places.get((number,)) or places.get((LAYERS,))
    return place.line if place is not None else 1


def _entries(value: Any, file: str) -> list[Any]:
    """Return texts and mappings of extents."""
    if isinstance(value, list) and all(isinstance(item, str | dict) for item in value):
        return [_without_name(item) if isinstance(item, dict) else item for item in value]
    layers = value.get(LAYERS) if isinstance(value, dict) else None
    if isinstance(layers, list) and all(isinstance(layer, dict) for layer in layers):
        return list(_combined(value, layers, file))
    raise ConfigError(
        Problem(
            "shapes are a list of problems, or layers with lists of the other extents",
            "Write for example\n    - 16x4096x14336\nor\n    m: [16, 512]\n    layers:\n"
            "    - {name: up, n: 14336, k: 4096}",
            file,
            1,
            1,
        )
    )


def _combined(
    value: Mapping[str, Any], layers: Sequence[Mapping[str, Any]], file: str
) -> Iterator[dict[str, Any]]:
    lists = {key: item for key, item in value.items() if key != LAYERS}
    for key, item in lists.items():
        if not isinstance(item, list):
            raise ConfigError(Problem(f"{key} is not a list", f"Write {key}: [{item}].", file))
    for layer in layers:
        for values in product(*lists.values()):
            yield _without_name(layer) | dict(zip(lists, values, strict=True))


def _without_name(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != NAME}


def _csv_rows(family: Family, text: str, file: str) -> list[tuple[int, dict[str, Any]]]:
    reader = csv.DictReader(text.splitlines())
    columns = [name for name in reader.fieldnames or [] if name.strip() in family.columns]
    if not columns:
        raise ConfigError(
            Problem(
                "no column of the first line is an extent",
                f"Call the columns {','.join(family.columns)}; others are left out.",
                file,
                1,
                1,
            )
        )
    return [
        (reader.line_num, {name.strip(): _number(row[name]) for name in columns if row[name]})
        for row in reader
    ]


def _number(text: str) -> int | str:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() else text
