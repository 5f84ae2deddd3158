"""A project's own file: ``fa4gen.toml``, or ``[tool.fa4gen]`` in pyproject.toml.

It names the project's configs, the output folder of ``render`` and ``check``, its own templates
and vendored folders, all relative to itself. It is looked for in the current folder and those
above, up to the home folder or the root; the nearest counts, and in one folder fa4gen.toml comes
first.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fa4gen.config.paths import shown_path
from fa4gen.config.project_place import SHARED_NAME, project_files
from fa4gen.config.schema_errors import place_of, read_model
from fa4gen.config.text import read_text
from fa4gen.config.toml_places import toml_places
from fa4gen.config.yaml_positions import Document
from fa4gen.errors import ConfigError, Problem
from fa4gen.strict import Field, Strict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fa4gen.config.yaml_positions import KeyPath, Place

SHARED_TABLE: tuple[str, ...] = ("tool", "fa4gen")

Adapter = Literal["c", "cmake", "torch", "jax", "tvm-ffi", "python", "hf-kernels"]
"""The adapters of a vendored folder; c and cmake always come."""
Text = Annotated[str, Field(min_length=1)]


class VendorEntry(Strict):
    """One ``[[vendor]]``: a folder that ``fa4gen vendor`` writes."""

    into: Text
    """The folder."""
    prefix: Annotated[str, Field(pattern=r"^[a-z](?:_?[a-z0-9])*$", max_length=32)]
    """The prefix of its C names."""
    configs: tuple[Text, ...] = ()
    """Config files, folders, globs and shipped names; the project's where none are given."""
    adapters: tuple[Adapter, ...] = ()
    """Adapters of the folder; c and cmake always come."""
    templates: str = ""
    """Folder of the project's own templates; the project's ``templates`` when not given."""
    allow: tuple[Text, ...] = ()
    """Patterns of files that ``fa4gen vendor check`` accepts as edited, missing or foreign."""


class ProjectFile(Strict):
    """The contents of a project's file."""

    configs: tuple[Text, ...] = ()
    """Config files, folders, globs and shipped names."""
    out: Text = "generated"
    """Folder of generated files."""
    written: tuple[Text, ...] = ("*",)
    """Names and patterns of the kernels whose files are kept in ``out``; of others, hashes are."""
    templates: str = ""
    """Folder of the project's own templates, which take precedence over the shipped ones."""
    vendor: tuple[VendorEntry, ...] = ()
    """Vendored folders."""


@dataclass(frozen=True)
class VendoredFolder:
    """A folder that the project vendors, with paths that work from anywhere."""

    folder: Path
    prefix: str
    configs: tuple[str, ...]
    adapters: tuple[str, ...]
    templates: Path | None
    allow: tuple[str, ...]


@dataclass(frozen=True)
class Project:
    """A project's file, read."""

    path: Path
    content: ProjectFile
    vendored: tuple[VendoredFolder, ...]

    @property
    def root(self) -> Path:
        """The folder that paths are relative to."""
        return self.path.parent

    @property
    def out(self) -> Path:
        """The folder of generated files."""
        return self.root / self.content.out

    @property
    def templates(self) -> Path | None:
        """The folder of the project's own templates; None without the key."""
        return self.root / self.content.templates if self.content.templates else None

    def keeps_files_of(self, kernel: str) -> bool:
        """Whether the files of ``kernel``, ``arch/name``, are kept, not only their hashes."""
        name = kernel.rpartition("/")[2]
        return any(is_called(name, kernel, pattern) for pattern in self.content.written)

    def entry_of(self, folder: Path) -> VendoredFolder | None:
        """Return the project's entry about ``folder``, if there is one."""
        wanted = folder.resolve()
        return next((item for item in self.vendored if item.folder.resolve() == wanted), None)


def is_called(name: str, kernel: str, pattern: str) -> bool:
    """Whether ``pattern`` of ``written`` is about the kernel ``name``, ``kernel`` with its arch."""
    return fnmatchcase(name, pattern) or fnmatchcase(kernel, pattern)


def find_project(start: Path | None = None) -> Project | None:
    """Return the project that ``start`` (the current folder) is in, None for none.

    Raises ConfigError when its file is wrong.
    """
    projects = map(read_project, project_files(start))
    return next((project for project in projects if project is not None), None)


def read_project(path: Path) -> Project | None:
    """Return the project file at ``path``; None for a pyproject.toml without ``[tool.fa4gen]``.

    Raises ConfigError with all that is wrong with it.
    """
    file = shown_path(path)
    text = read_text(path, "project")
    data = _parse(text, file)
    table = SHARED_TABLE if path.name == SHARED_NAME else ()
    for key in table:
        if not isinstance(data, dict) or key not in data:
            return None
        data = data[key]
    places = {
        key[len(table) :]: place
        for key, place in toml_places(text).items()
        if key[: len(table)] == table
    }
    if not isinstance(data, dict):
        line, column = place_of(table, toml_places(text), value=True)
        what = f"{'.'.join(table)} is not a table"
        raise ConfigError(Problem(what, "Write [tool.fa4gen].", file, line, column))
    document = Document(data, places, {}, (), frozenset())
    content = read_model(document, ProjectFile, file)
    problems = _contradictions(content, path.parent, places, file)
    if problems:
        raise ConfigError(*problems)
    return Project(path, content, tuple(_entry(e, content, path.parent) for e in content.vendor))


def _parse(text: str, file: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = re.search(r" \(at line (\d+), column (\d+)\)$", message)
        line, column = (int(place[1]), int(place[2])) if place else (0, 0)
        what = message[: place.start()] if place else message
        raise ConfigError(Problem(f"not TOML: {what}", "", file, line, column)) from error
    except RecursionError as error:
        message = "not TOML: hundreds of brackets inside each other"
        raise ConfigError(Problem(message, "Is this the right file?", file)) from error


def _entry(entry: VendorEntry, content: ProjectFile, root: Path) -> VendoredFolder:
    templates = entry.templates or content.templates
    return VendoredFolder(
        folder=root / entry.into,
        prefix=entry.prefix,
        configs=entry.configs or content.configs,
        adapters=entry.adapters,
        templates=root / templates if templates else None,
        allow=entry.allow,
    )


def _contradictions(
    content: ProjectFile, root: Path, places: Mapping[KeyPath, Place], file: str
) -> list[Problem]:
    """Return the contradictions between entries, each placed at the later one."""
    problems = []

    def add(key: KeyPath, message: str, remedy: str) -> None:
        line, column = place_of(key, places, value=True)
        problems.append(Problem(message, remedy, file, line, column, str(key[-1])))

    prefixes: dict[str, str] = {}
    folders: dict[Path, str] = {}
    for number, entry in enumerate(content.vendor):
        here = ("vendor", number)
        if not entry.configs and not content.configs:
            add(here, f"no configs for {entry.into}", "Add configs = [...] here or to the project.")
        if entry.prefix in prefixes:
            add(
                (*here, "prefix"),
                f"{prefixes[entry.prefix]} has the prefix {entry.prefix}, too: a program could not "
                "link both",
                "Give one of them another prefix.",
            )
        prefixes.setdefault(entry.prefix, entry.into)
        folder = (root / entry.into).resolve()
        for other, name in folders.items():
            if folder == other or folder in other.parents or other in folder.parents:
                add(
                    (*here, "into"),
                    f"{entry.into} and {name} overlap",
                    "Give each vendored folder a place of its own.",
                )
        folders.setdefault(folder, entry.into)
    return problems
