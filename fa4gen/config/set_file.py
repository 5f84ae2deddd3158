"""Files that name several kernels of one computation: sets, and tables of what tuning chose.

``NAME.set.yaml`` names kernels; ``NAME.tuning.yaml``, which ``fa4gen tune`` writes, also says for
which problems each was chosen, and how that was found out. Neither is a config.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from fa4gen.config.find import SET_SUFFIXES, TABLE_SUFFIXES, find_configs
from fa4gen.config.paths import shown_path
from fa4gen.config.schema_errors import explain_errors, place_of
from fa4gen.config.text import read_text
from fa4gen.config.yaml_positions import read_document
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import Strict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.config.yaml_positions import Document

Text = Annotated[str, Field(min_length=1)]
Extent = Annotated[int, Field(ge=1)]
Range = Annotated[list[Extent], Field(min_length=2, max_length=2)]


class Region(Strict):
    """Problems for which a kernel was chosen, and what was found out at one of them."""

    where: dict[str, Extent | Range]
    """By extent, its value, or the smallest and the largest."""
    kernel: Text
    """The name of the kernel."""
    problem: Text | None = None
    """The problem that it was chosen at."""
    us: float | None = None
    """Its measured time there, in microseconds; none where nothing was measured."""
    predicted_us: float | None = None
    peers_us: dict[str, float] = Field(default_factory=dict)

    def holds(self, extents: Mapping[str, int]) -> bool:
        """Whether a problem is in the region; extents that it does not name are free."""
        for name, wanted in self.where.items():
            low, high = wanted if isinstance(wanted, list) else (wanted, wanted)
            if not low <= extents.get(name, 0) <= high:
                return False
        return True


class KernelEntry(Strict):
    """A kernel of a set."""

    config: Text
    """Path, relative to the file, or the name of a shipped config."""
    config_sha256: str = ""
    """Of the config that was measured; "" where any will do."""


class SetFile(Strict):
    """What a set or a table says."""

    kernels: Annotated[list[Text | KernelEntry], Field(min_length=1)]
    regions: list[Region] = Field(default_factory=list)
    chip: str = ""
    """The GPU that was measured, or meant."""
    decided_by: Literal["", "measurement", "model"] = ""
    base: str = ""
    """The config that was tuned."""
    date: str = ""
    versions: dict[str, str] = Field(default_factory=dict)

    @field_validator("kernels")
    @classmethod
    def _each_once(cls, kernels: list[str | KernelEntry]) -> list[str | KernelEntry]:
        names = [one if isinstance(one, str) else one.config for one in kernels]
        twice = [name for number, name in enumerate(names) if name in names[:number]]
        if twice:
            raise ValueError(f"{twice[0]} is named twice")
        return kernels

    @property
    def entries(self) -> list[KernelEntry]:
        """The kernels, each as an entry."""
        return [KernelEntry(config=one) if isinstance(one, str) else one for one in self.kernels]


@dataclass(frozen=True)
class KernelSetFile:
    """A set or table with the config files that it names."""

    path: Path
    content: SetFile
    configs: tuple[Path, ...]
    """In the order of ``content.entries``."""


def is_set_file(path: Path) -> bool:
    """Whether the name is that of a set or a table."""
    return path.name.endswith(SET_SUFFIXES)


def is_table(path: Path) -> bool:
    """Whether the name is that of a tuning table."""
    return path.name.endswith(TABLE_SUFFIXES)


def read_set(path: Path) -> KernelSetFile:
    """Read the set or table at ``path``. Raises ConfigError with all that is wrong with it."""
    file = shown_path(path)
    document = read_document(read_text(path, "set of kernels"), file)
    if document.problems:
        raise ConfigError(*document.problems)
    if not isinstance(document.value, dict):
        remedy = "Begin with kernels: and a list of configs."
        raise ConfigError(Problem("a set of kernels is a mapping", remedy, file, 1, 1))
    try:
        content = SetFile.model_validate(document.value)
    except ValidationError as error:
        wrong = explain_errors([error], document, SetFile.model_json_schema(), file)
        raise ConfigError(*sorted(wrong, key=lambda p: (p.line, p.column))) from error
    problems: list[Problem] = []
    configs = []
    for number, entry in enumerate(content.entries):
        try:
            configs.append(_find(entry.config, path))
        except ConfigError as error:
            at = place_of(("kernels", number), document.places, value=True)
            message, remedy = error.problems[0].message, error.problems[0].remedy
            problems.append(Problem(f"{entry.config}: {message}", remedy, file, *at))
    problems += _unknown_kernels(content, configs, document, file)
    if problems:
        raise ConfigError(*problems)
    return KernelSetFile(path, content, tuple(configs))


def _find(config: str, path: Path) -> Path:
    found = find_configs([config], path.parent)
    if len(found) != 1:
        raise ConfigError(Problem(f"names {len(found)} configs", "Name one of them."))
    return found[0]


def _unknown_kernels(
    content: SetFile, configs: list[Path], document: Document, file: str
) -> list[Problem]:
    """Return a problem for each region whose kernel is not one of the set."""
    names = {path.stem for path in configs}
    problems: list[Problem] = []
    if len(configs) < len(content.kernels):
        return problems  # it may be one of those that were not found
    for number, region in enumerate(content.regions):
        if region.kernel not in names:
            at: Any = place_of(("regions", number, "kernel"), document.places, value=True)
            what = f"{region.kernel} is no kernel of this file"
            remedy = f"Kernels: {', '.join(sorted(names))}."
            problems.append(Problem(what, remedy, file, *at))
    return problems
