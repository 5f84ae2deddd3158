"""Reads a sweep file into its parts, and finds everything that is wrong with its form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from fa4gen.config.expectations import Expectations, similar
from fa4gen.config.find import find_configs
from fa4gen.config.layers import Origin, read_layers
from fa4gen.config.load import config_schema
from fa4gen.config.paths import shown_path
from fa4gen.config.schema_errors import read_model
from fa4gen.config.sweep_matrix import same
from fa4gen.config.yaml_positions import Document, KeyPath, Place, dotted
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import Field, Strict
from fa4gen.yaml_words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
"""Names of results files: no folders."""


class SweepContent(Strict):
    """The keys of a sweep file."""

    name: Annotated[str, Field(pattern=NAME, max_length=100)] = ""
    """The sweep's name in results and reports; the file's stem when not given."""
    base: Annotated[str, Field(min_length=1)] | dict[str, Any]
    """Keys that all cases share, or the path of a config, from the sweep's folder."""
    matrix: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] | None = None
    """Values by key; every combination is a case."""
    include: tuple[dict[str, Any], ...] | None = None
    """Keys added to the combinations with the same matrix values, else cases of their own."""
    exclude: tuple[dict[str, Any], ...] | None = None
    """Values of matrix keys; combinations that have them are dropped."""


@dataclass(frozen=True)
class SweepBase:
    """The common part of all cases of a sweep."""

    name: str
    """The prefix of the cases' names."""
    keys: Mapping[str, Any]
    file: str
    places: Mapping[KeyPath, Place]
    """Places of its keys, in ``file`` or where ``origins`` says."""
    origins: Mapping[KeyPath, Origin] = field(default_factory=dict)


@dataclass(frozen=True)
class SweepFile:
    """The parts of a sweep file, well-formed; the values themselves are not checked yet."""

    name: str
    base: SweepBase
    matrix: Mapping[str, list[Any]]
    include: Sequence[Mapping[str, Any]]
    exclude: Sequence[Mapping[str, Any]]


def read_sweep(document: Document, path: Path) -> SweepFile:
    """Take apart the document of the sweep at ``path``. Raises ConfigError with all problems."""
    return _Reader(document, path, shown_path(path)).read()


@dataclass
class _Reader:
    """Takes a sweep document apart and gathers everything that is wrong with it."""

    document: Document
    path: Path
    file: str
    problems: list[Problem] = field(default_factory=list)

    def read(self) -> SweepFile:
        data = self.document.value
        if not isinstance(data, dict):
            raise ConfigError(
                *self.document.problems,
                Problem(
                    "a sweep is a mapping with the keys base and matrix",
                    "Begin with base: and the name of a config, then matrix: and lists of values.",
                    self.file,
                    1,
                    1,
                ),
            )
        name = data.get("name", self.path.stem)
        if "name" not in data and not re.search(NAME, name):
            self._add((), f"{shown(name)} cannot name a results file", "Add name: and a word.")
        content = None
        try:
            content = read_model(self.document, SweepContent, self.file)
        except ConfigError as error:
            self.problems += error.problems
        base = self._base(data.get("base"), str(name))
        matrix = _mapping(data.get("matrix"))
        self._check_keys(("matrix",), matrix, may_have_name=False)
        for key, values in matrix.items():
            for index, value in enumerate(values if isinstance(values, list) else ()):
                if any(same(value, earlier) for earlier in values[:index]):
                    at = ("matrix", key, index)
                    self._add(at, f"{shown(value)} is in matrix.{key} twice")
        for part in ("include", "exclude"):
            entries = data.get(part)
            for index, entry in enumerate(entries if isinstance(entries, list) else ()):
                may = part == "include" and not matrix
                self._check_keys((part, index), _mapping(entry), may_have_name=may)
        if isinstance(data.get("exclude"), list):
            self._check_exclude_keys([_mapping(entry) for entry in data["exclude"]], matrix)
        if self.problems or content is None:
            raise ConfigError(*sorted(self.problems, key=lambda p: (p.file != self.file, p.line)))
        if not matrix and not content.include:
            raise ConfigError(
                Problem(
                    "the sweep expands to nothing: it has neither a matrix nor an include entry",
                    "Add matrix: with a list of values for one key at least.",
                    self.file,
                )
            )
        return SweepFile(name, base, matrix, content.include or (), content.exclude or ())

    def _base(self, base: Any, name: str) -> SweepBase:
        if isinstance(base, str) and base:
            return self._base_file(base, name)
        keys = _mapping(base)
        self._check_keys(("base",), keys, may_have_name=True)
        own_name = keys.get("name")
        return SweepBase(
            own_name if isinstance(own_name, str) and own_name else name,
            keys,
            self.file,
            below(self.document.places, ("base",)),
        )

    def _base_file(self, base: str, name: str) -> SweepBase:
        nothing = SweepBase("", {}, self.file, {})
        try:
            beside = self.path.parent / base
            found = find_configs([beside if beside.exists() else base])
            if len(found) != 1:
                self._add(("base",), f"base: {base} names {len(found)} configs", "Name one.")
                return nothing
            layers = read_layers(found[0])
            file = shown_path(layers.files[0])
        except ConfigError as error:
            for problem in error.problems:
                self._add(("base",), f"base: {problem.message} ({problem.place})", problem.remedy)
            return nothing
        self.problems += layers.document.problems
        keys = layers.document.value
        if not isinstance(keys, dict):
            self._add(("base",), f"base: {file} is not a config")
            return nothing
        # Not the base's own name: that describes values that vary here.
        return SweepBase(name, keys, file, layers.document.places, layers.origins)

    def _check_exclude_keys(
        self, entries: Sequence[Mapping[str, Any]], matrix: Mapping[str, Any]
    ) -> None:
        known = Expectations(config_schema(), {}).keys(())
        for index, entry in enumerate(entries):
            for key in entry:
                if key not in matrix and key in known:
                    self._add(
                        ("exclude", index, key),
                        f"exclude names {key}, which is not a key of the matrix",
                        f"Keys of the matrix: {', '.join(matrix) or 'none'}.",
                        at_key=True,
                    )

    def _check_keys(self, path: KeyPath, keys: Mapping[str, Any], *, may_have_name: bool) -> None:
        known = Expectations(config_schema(), {}).keys(())
        for key in keys:
            if key == "name" and not may_have_name:
                self._add(
                    (*path, key),
                    "name cannot vary: names are made of the base's name and the values that vary",
                    "Remove it. Entries of include have names where there is no matrix.",
                    at_key=True,
                )
            elif key not in known:
                near = similar(key, known)
                remedy = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(known)}."
                where = f"unknown key {key} in {dotted(path)}"
                self._add((*path, key), where, remedy, at_key=True)

    def _add(self, path: KeyPath, message: str, remedy: str = "", *, at_key: bool = False) -> None:
        line, column = position_in(self.document.places, path, at_key=at_key)
        self.problems.append(Problem(message, remedy, self.file, line, column, dotted(path)))


def _mapping(value: Any) -> dict[str, Any]:
    """Return ``value``, or no keys where it is another kind of value."""
    return value if isinstance(value, dict) else {}


def below(values: Mapping[KeyPath, Any], prefix: KeyPath) -> dict[KeyPath, Any]:
    """Return the entries under ``prefix`` (not of it), with the prefix taken off."""
    length = len(prefix)
    return {
        path[length:]: value
        for path, value in values.items()
        if len(path) > length and path[:length] == prefix
    }


def position_in(
    places: Mapping[KeyPath, Place], path: KeyPath, *, at_key: bool = False
) -> tuple[int, int]:
    """Return line and column of the value (else of the key) at ``path``; (0, 0) when not there."""
    place = places.get(path)
    if place is None:
        return 0, 0
    return (place.line, place.column) if at_key else (place.value_line, place.value_column)
