"""Reads a sweep file into its parts, and finds everything that is wrong with its form."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fa4gen.config.expectations import Expectations, similar
from fa4gen.config.find import find_configs
from fa4gen.config.layers import Origin, read_layers
from fa4gen.config.load import config_schema
from fa4gen.config.paths import shown_path
from fa4gen.config.sweep_matrix import same
from fa4gen.config.yaml_positions import Document, KeyPath, Place, dotted
from fa4gen.errors import ConfigError, Problem
from fa4gen.yaml_words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
"""Names of results files: no folders."""
KEYS = ("name", "base", "matrix", "include", "exclude")


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
        self.problems += self.document.problems
        data = self.document.value
        if not isinstance(data, dict):
            raise ConfigError(
                *self.problems,
                Problem(
                    "a sweep is a mapping with the keys base and matrix",
                    "Begin with base: and the name of a config, then matrix: and lists of values.",
                    self.file,
                    1,
                    1,
                ),
            )
        for key in data:
            if key not in KEYS:
                near = similar(key, KEYS)
                remedy = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(KEYS)}."
                self._add((key,), f"unknown key {key}", remedy, at_key=True)
        name = data.get("name", self.path.stem)
        if not isinstance(name, str) or not name:
            self._add(("name",), f"name is {shown(name)}, not a text", "Put it in quotes.")
            name = self.path.stem
        elif not _NAME.fullmatch(name):
            self._add(
                ("name",),
                f"{shown(name)} cannot name a results file",
                "Use at most 100 letters, digits, _, - and dots, beginning with a letter, a digit "
                "or _.",
            )
        base = self._base(data, name)
        matrix = self._matrix(data.get("matrix"))
        included = self._entries("include", data.get("include"), may_have_names=not matrix)
        excluded = self._entries("exclude", data.get("exclude"), may_have_names=False)
        self._check_exclude_keys(excluded, matrix)
        if self.problems:
            raise ConfigError(*sorted(self.problems, key=lambda p: (p.file != self.file, p.line)))
        if not matrix and not included:
            raise ConfigError(
                Problem(
                    "the sweep expands to nothing: it has neither a matrix nor an include entry",
                    "Add matrix: with a list of values for one key at least.",
                    self.file,
                )
            )
        return SweepFile(name, base, matrix, included, excluded)

    def _base(self, data: dict[str, Any], name: str) -> SweepBase:
        if "base" not in data:
            self._add(
                (), "the key base is missing", "Add base: a config's path, or a mapping of keys."
            )
            return SweepBase(name, {}, self.file, {})
        base = data["base"]
        if isinstance(base, str):
            return self._base_file(base, name)
        if not isinstance(base, dict):
            self._add(
                ("base",),
                f"base is {shown(base)}: it must be a config's path or a mapping of keys",
            )
            return SweepBase(name, {}, self.file, {})
        self._check_keys(("base",), base)
        own_name = base.get("name")
        return SweepBase(
            own_name if isinstance(own_name, str) and own_name else name,
            base,
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

    def _matrix(self, matrix: Any) -> dict[str, list[Any]]:
        if matrix is None:
            return {}
        if not isinstance(matrix, dict):
            self._add(
                ("matrix",), "matrix must map keys to lists", "Write matrix: {depth: [64, 128]}."
            )
            return {}
        self._check_keys(("matrix",), matrix)
        lists: dict[str, list[Any]] = {}
        for key, values in matrix.items():
            here = ("matrix", key)
            if key == "name":
                self._no_name(here)
            elif not isinstance(values, list):
                self._add(
                    here,
                    f"matrix.{key} is {shown(values)}, not a list",
                    f"Write {key}: [{shown(values)}], or move the key to base.",
                )
            elif not values:
                self._add(
                    here,
                    f"matrix.{key} is empty: the sweep expands to nothing",
                    "Give it a value, or remove the key.",
                )
            else:
                for index, value in enumerate(values):
                    if any(same(value, earlier) for earlier in values[:index]):
                        self._add((*here, index), f"{shown(value)} is in matrix.{key} twice")
                lists[key] = values
        return lists

    def _entries(self, part: str, entries: Any, *, may_have_names: bool) -> list[dict[str, Any]]:
        if entries is None:
            return []
        if not isinstance(entries, list):
            self._add(
                (part,), f"{part} must be a list of mappings", "Begin each entry with a dash."
            )
            return []
        good: list[dict[str, Any]] = []
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict) or not entry:
                self._add(
                    (part, index), f"{part}[{index}] is {shown(entry)}, not a mapping with keys"
                )
                continue
            self._check_keys((part, index), entry)
            if "name" in entry and not may_have_names:
                self._no_name((part, index, "name"))
            good.append(entry)
        return good

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

    def _check_keys(self, path: KeyPath, keys: Mapping[str, Any]) -> None:
        known = Expectations(config_schema(), {}).keys(())
        for key in keys:
            if key not in known:
                near = similar(key, known)
                remedy = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(known)}."
                where = f"unknown key {key} in {dotted(path)}"
                self._add((*path, key), where, remedy, at_key=True)

    def _no_name(self, path: KeyPath) -> None:
        self._add(
            path,
            "name cannot vary: names are made of the base's name and the values that vary",
            "Remove it. Entries of include have names where there is no matrix.",
            at_key=True,
        )

    def _add(self, path: KeyPath, message: str, remedy: str = "", *, at_key: bool = False) -> None:
        line, column = position_in(self.document.places, path, at_key=at_key)
        self.problems.append(Problem(message, remedy, self.file, line, column, dotted(path)))


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
