"""Files that name several kernels of one computation: sets, and tables of what tuning chose.

``NAME.set.yaml`` names kernels; ``NAME.tuning.yaml``, which ``fa4gen tune`` writes, also says for
which problems each was chosen, and how that was found out; where between measured problems the
cost model prefers another kernel of the table, it says that too. It holds the tiles that it names.
The tables of a chip may stand in one file: ``FILE/NAME.tuning.yaml`` is one of them. None of these
is a config.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fa4gen.config.entries import TABLE_END, entry_of, read_table, tiles_in
from fa4gen.config.expectations import similar
from fa4gen.config.find import SET_SUFFIXES, TABLE_SUFFIXES, find_configs
from fa4gen.config.paths import shown_path
from fa4gen.config.text import read_text
from fa4gen.config.yaml_positions import read_document
from fa4gen.errors import ConfigError, Problem
from fa4gen.yaml_words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.yaml_positions import Document, KeyPath

KEYS = (
    *("kernels", "regions", "between", "chip", "decided_by", "base", "date", "versions"),
    "tiles",
)
ENTRY_KEYS = ("config", "config_sha256")
REGION_KEYS = ("where", "kernel", "problem", "us", "predicted_us", "peers_us")
DECIDED_BY = ("measurement", "model")


@dataclass(frozen=True)
class Region:
    """Problems for which a kernel was chosen, and what was found out at one of them."""

    where: Mapping[str, tuple[int, int]]
    """By extent, the smallest and the largest."""
    kernel: str
    """The name of the kernel."""
    problem: str = ""
    """The problem that it was chosen at."""
    us: float | None = None
    """Its measured time there, in microseconds; None where nothing was measured."""
    predicted_us: float | None = None
    peers_us: Mapping[str, float] = field(default_factory=dict)
    """Measured times of peers."""

    def holds(self, extents: Mapping[str, int]) -> bool:
        """Whether a problem is in the region; extents that it does not name are free."""
        return all(low <= extents.get(name, 0) <= high for name, (low, high) in self.where.items())


@dataclass(frozen=True)
class KernelEntry:
    """A kernel of a set."""

    config: str
    """A tile of the file, a path relative to the file, or the name of a shipped config."""
    config_sha256: str = ""
    """The hash of the config that was measured; "" where any will do."""


@dataclass(frozen=True)
class KernelSetFile:
    """The contents of a set or a table, with the config files that it names."""

    path: Path
    entries: tuple[KernelEntry, ...]
    configs: tuple[Path, ...] = ()
    """The config files of the entries, in their order."""
    regions: tuple[Region, ...] = ()
    between: tuple[Region, ...] = ()
    """Parts of the regions where the model prefers another kernel of the table."""
    chip: str = ""
    """The GPU that was measured, or meant."""
    decided_by: str = ""
    """"measurement", "model", or "" of a set."""
    base: str = ""
    """The config that was tuned."""
    date: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def followed(self) -> tuple[Region, ...]:
        """All regions in the order of precedence: the first that holds a problem counts."""
        return (*self.between, *self.regions)


def is_set_file(path: Path) -> bool:
    """Whether the name is that of a set or a table."""
    return path.name.endswith(SET_SUFFIXES)


def is_table(path: Path) -> bool:
    """Whether the name is that of a tuning table."""
    return path.name.endswith(TABLE_SUFFIXES)


def read_set(path: Path) -> KernelSetFile:
    """Read the set or table at ``path``. Raises ConfigError with all that is wrong with it."""
    entry = entry_of(path)
    if entry:
        document = read_table(entry.file, entry.name.removesuffix(TABLE_END))
        return _Reader(document, path, entry.file, tiles_in(entry.file)).read()
    document = read_document(read_text(path, "set"), shown_path(path))
    return _Reader(document, path, path).read()


@dataclass
class _Reader:
    """Takes a document apart and gathers everything that is wrong with it."""

    document: Document
    path: Path
    home: Path
    """The file that the set stands in."""
    tiles: Sequence[str] = ()
    """The names of the file's tiles."""
    problems: list[Problem] = field(default_factory=list)

    def read(self) -> KernelSetFile:
        self.problems += self.document.problems
        data = self.document.value
        if not isinstance(data, dict):
            remedy = "Begin with kernels: and a list of configs."
            what = Problem("a set of kernels is a mapping", remedy, shown_path(self.home), 1, 1)
            raise ConfigError(*self.problems, what)
        self._check_keys((), data, KEYS)
        self.tiles = [*self.tiles, *self._map((), data, "tiles")]
        entries = self._entries(data.get("kernels"))
        found = [self._find(number, entry) for number, entry in enumerate(entries)]
        configs = tuple(path for path in found if path is not None)
        names = [path.stem for path in configs] if None not in found else None
        decided_by = self._text((), data, "decided_by")
        if decided_by and decided_by not in DECIDED_BY:
            self._add(("decided_by",), f"decided_by is {decided_by}", f"Write {DECIDED_BY[0]}.")
        result = KernelSetFile(
            path=self.path,
            entries=entries,
            configs=configs,
            regions=self._regions(data, "regions", names),
            between=self._regions(data, "between", names),
            chip=self._text((), data, "chip"),
            decided_by=decided_by,
            base=self._text((), data, "base"),
            date=self._text((), data, "date"),
            versions={name: str(value) for name, value in self._map((), data, "versions").items()},
        )
        if self.problems:
            raise ConfigError(*sorted(self.problems, key=lambda p: (p.line, p.column)))
        return result

    def _entries(self, kernels: Any) -> tuple[KernelEntry, ...]:
        if not isinstance(kernels, list) or not kernels:
            self._add(("kernels",), "kernels must be a list of configs", "Name one at least.")
            return ()
        entries: list[KernelEntry] = []
        for number, item in enumerate(kernels):
            at = ("kernels", number)
            given = {"config": item} if isinstance(item, str) else item
            if not isinstance(given, dict):
                self._add(at, f"{shown(item)} names no config")
                continue
            self._check_keys(at, given, ENTRY_KEYS)
            text = self._text(at, given, "config")
            if not text:
                self._add(at, "config is missing", "Name a config.")
            elif text in [entry.config for entry in entries]:
                self._add(at, f"{text} is named twice", "Remove one of them.")
            else:
                entries.append(KernelEntry(text, self._text(at, given, "config_sha256")))
        return tuple(entries)

    def _find(self, number: int, entry: KernelEntry) -> Path | None:
        if entry.config in self.tiles:
            return self.home / entry.config
        try:
            found = find_configs([entry.config], self.home.parent)
        except ConfigError as error:
            problem = error.problems[0]
            self._add(("kernels", number), f"{entry.config}: {problem.message}", problem.remedy)
            return None
        if len(found) != 1:
            what = f"{entry.config} names {len(found)} configs"
            self._add(("kernels", number), what, "Name one of them.")
            return None
        return found[0]

    def _regions(
        self, data: Mapping[str, Any], key: str, names: list[str] | None
    ) -> tuple[Region, ...]:
        given = enumerate(self._list(data, key))
        return tuple(self._region((key, number), region, names) for number, region in given)

    def _region(self, at: KeyPath, region: Any, names: list[str] | None) -> Region:
        if not isinstance(region, dict):
            self._add(at, f"{shown(region)} is no region", "Give where and kernel.")
            return Region({}, "")
        self._check_keys(at, region, REGION_KEYS)
        kernel = self._text(at, region, "kernel")
        if names is not None and kernel not in names:
            remedy = f"Kernels: {', '.join(sorted(names))}."
            self._add((*at, "kernel"), f"{kernel or 'nothing'} is no kernel of this file", remedy)
        where = self._map(at, region, "where")
        peers = self._map(at, region, "peers_us")
        return Region(
            where={name: self._range((*at, "where", name), value) for name, value in where.items()},
            kernel=kernel,
            problem=self._text(at, region, "problem"),
            us=self._time((*at, "us"), region.get("us")),
            predicted_us=self._time((*at, "predicted_us"), region.get("predicted_us")),
            peers_us={
                name: self._time((*at, "peers_us", name), value) or 0.0
                for name, value in peers.items()
            },
        )

    def _range(self, at: KeyPath, value: Any) -> tuple[int, int]:
        ends = value if isinstance(value, list) else [value, value]
        whole = all(isinstance(end, int) and not isinstance(end, bool) for end in ends)
        if not whole or len(ends) != 2 or not 1 <= ends[0] <= ends[1]:
            remedy = "Give a whole number from 1 on, or [smallest, largest]."
            self._add(at, f"{at[-1]} is {shown(value)}, no range of an extent", remedy)
            return (1, 1)
        return (ends[0], ends[1])

    def _time(self, at: KeyPath, value: Any) -> float | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            self._add(at, f"{at[-1]} is {shown(value)}, no time in microseconds")
            return None
        return float(value)

    def _text(self, at: KeyPath, data: Mapping[str, Any], key: str) -> str:
        value = data.get(key, "")
        if not isinstance(value, str):
            self._add((*at, key), f"{key} is {shown(value)}, not a text", "Put it in quotes.")
            return ""
        return value

    def _map(self, at: KeyPath, data: Mapping[str, Any], key: str) -> dict[str, Any]:
        value = data.get(key, {})
        if not isinstance(value, dict):
            self._add((*at, key), f"{key} is {shown(value)}, not a mapping")
            return {}
        return value

    def _list(self, data: Mapping[str, Any], key: str) -> list[Any]:
        value = data.get(key, [])
        if not isinstance(value, list):
            self._add((key,), f"{key} is {shown(value)}, not a list")
            return []
        return value

    def _check_keys(self, at: KeyPath, data: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in data:
            if key not in known:
                near = similar(key, known)
                remedy = f"Did you mean {near[0]}?" if near else f"Known keys: {', '.join(known)}."
                self._add((*at, key), f"unknown key {key}", remedy)

    def _add(self, at: KeyPath, message: str, remedy: str = "") -> None:
        place = None
        while place is None and at:
            place, at = self.document.places.get(at), at[:-1]
        line, column = (place.value_line, place.value_column) if place else (1, 1)
        self.problems.append(Problem(message, remedy, shown_path(self.home), line, column))
