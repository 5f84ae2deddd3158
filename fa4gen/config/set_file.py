"""Files that name several kernels of one computation: sets, and tables of what tuning chose.

``NAME.set.yaml`` names kernels; ``NAME.tuning.yaml``, which ``fa4gen tune`` writes, also says for
which problems each was chosen, and how that was found out; where between measured problems the
cost model prefers another kernel of the table, it says that too. It holds the tiles that it names.
The tables of a chip may stand in one file: ``FILE/NAME.tuning.yaml`` is one of them. None of these
is a config.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fa4gen.config.entries import TABLE_END, entry_of, read_table, tiles_in
from fa4gen.config.find import SET_SUFFIXES, TABLE_SUFFIXES, find_configs
from fa4gen.config.paths import shown_path
from fa4gen.config.schema_errors import place_of, read_model
from fa4gen.config.text import read_text
from fa4gen.config.yaml_positions import read_document
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import Field, Named, Read, Strict
from fa4gen.yaml_words import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.yaml_positions import Document, KeyPath

NONE = Named()
"""No entries by name."""


def _ends(value: Any) -> Any:
    ends = value if isinstance(value, (list, tuple)) else [value, value]
    if len(ends) != 2 or any(type(end) is not int for end in ends) or not 1 <= ends[0] <= ends[1]:
        raise ValueError(
            f"{shown(value)} is no range of an extent: "
            "give a whole number from 1 on, or [smallest, largest]"
        )
    return ends


def _positive(time: float) -> float:
    if time == 0:
        raise ValueError("0 is no time in microseconds")
    return time


Ends = Annotated[tuple[int, int], Read(_ends, first=True, also=(int,))]
"""The smallest and the largest; a number stands for both."""
Microseconds = Annotated[float, Field(ge=0), Read(_positive)]


Name = Annotated[str, Field(min_length=1)]


class Region(Strict):
    """Problems for which a kernel was chosen, and what was found out at one of them."""

    where: dict[str, Ends]
    """By extent, the smallest and the largest."""
    kernel: str
    """The name of the kernel."""
    problem: str = ""
    """The problem that it was chosen at."""
    us: Microseconds | None = None
    """Its measured time there, in microseconds; None where nothing was measured."""
    predicted_us: Microseconds | None = None
    peers_us: dict[str, Microseconds] = NONE
    """Measured times of peers."""

    def holds(self, extents: Mapping[str, int]) -> bool:
        """Whether a problem is in the region; extents that it does not name are free."""
        return all(low <= extents.get(name, 0) <= high for name, (low, high) in self.where.items())


class KernelEntry(Strict):
    """A kernel of a set."""

    config: Name
    """A tile of the file, a path relative to the file, or the name of a shipped config."""
    config_sha256: str = ""
    """The hash of the config that was measured; "" where any will do."""


class SetContent(Strict):
    """The keys of a set or a table."""

    kernels: Annotated[tuple[Name | KernelEntry, ...], Field(min_length=1)]
    """Configs: tiles of the file, paths relative to it, or names of shipped ones."""
    regions: tuple[Region, ...] = ()
    """Problems with the kernel that was chosen for them; the first that holds a problem counts."""
    between: tuple[Region, ...] = ()
    """Parts of the regions where the model prefers another kernel of the table."""
    chip: str = ""
    """The GPU that was measured, or meant."""
    decided_by: Literal["measurement", "model", ""] = ""
    """The reason of the choices: times on the chip, or the cost model."""
    base: str = ""
    """The config that was tuned."""
    date: str = ""
    """The day of the measurement."""
    versions: dict[str, Any] = NONE
    """Versions of the packages that were measured with."""
    tiles: dict[str, Any] = NONE
    """Configs by name, which the kernels of the file may be."""


class TablesFile(Strict):
    """A file of several tables: ``FILE/NAME.tuning.yaml`` is one of them."""

    tables: dict[str, SetContent]
    tiles: dict[str, Any] = NONE
    """Configs by name, which the kernels of the tables may be."""


@dataclass(frozen=True)
class KernelSetFile:
    """A set or a table, with the config files that it names."""

    path: Path
    content: SetContent
    configs: tuple[Path, ...]
    """The config files of the kernels, in their order."""

    @property
    def entries(self) -> tuple[KernelEntry, ...]:
        """The kernels."""
        return tuple(
            KernelEntry(config=one) if isinstance(one, str) else one for one in self.content.kernels
        )

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions of the table."""
        return self.content.regions

    @property
    def between(self) -> tuple[Region, ...]:
        """Parts of the regions where the model prefers another kernel of the table."""
        return self.content.between

    @property
    def chip(self) -> str:
        """The GPU that was measured, or meant."""
        return self.content.chip

    @property
    def base(self) -> str:
        """The config that was tuned."""
        return self.content.base

    @property
    def decided_by(self) -> str:
        """The word "measurement" or "model"; "" of a set."""
        return self.content.decided_by

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
        return _read(document, path, entry.file, tiles_in(entry.file))
    return _read(read_document(read_text(path, "set"), shown_path(path)), path, path, ())


def _read(document: Document, path: Path, home: Path, tiles: Sequence[str]) -> KernelSetFile:
    """Return the set in ``document``, which stands in the file ``home`` with ``tiles``."""
    file = shown_path(home)
    if not isinstance(document.value, dict):
        remedy = "Begin with kernels: and a list of configs."
        what = Problem("a set of kernels is a mapping", remedy, file, 1, 1)
        raise ConfigError(*document.problems, what)
    content = read_model(document, SetContent, file)
    problems: list[Problem] = []

    def add(at: KeyPath, message: str, remedy: str) -> None:
        line, column = place_of(at, document.places, value=True)
        problems.append(Problem(message, remedy, file, line, column))

    configs: dict[str, Path] = {}
    for number, kernel in enumerate(content.kernels):
        at, name = ("kernels", number), kernel if isinstance(kernel, str) else kernel.config
        if name in configs:
            add(at, f"{name} is named twice", "Remove one of them.")
        elif name in tiles or name in content.tiles:
            configs[name] = home / name
            continue
        try:
            found = find_configs([name], home.parent)
        except ConfigError as error:
            add(at, f"{name}: {error.problems[0].message}", error.problems[0].remedy)
            continue
        if len(found) != 1:
            add(at, f"{name} names {len(found)} configs", "Name one of them.")
        configs[name] = found[0]
    names = {path.stem for path in configs.values()}
    for key in ("regions", "between"):
        for number, region in enumerate(getattr(content, key)):
            if region.kernel not in names and not problems:
                remedy = f"Kernels: {', '.join(sorted(names))}."
                add((key, number, "kernel"), f"{region.kernel} is no kernel of this file", remedy)
    if problems:
        raise ConfigError(*problems)
    return KernelSetFile(path, content, tuple(configs.values()))
