"""The folders that a call of ``fa4gen vendor`` is about, and the kernels that each is to hold."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from fa4gen.config.paths import shown_path
from fa4gen.config.project import Adapter, find_project
from fa4gen.errors import ConfigError, Problem
from fa4gen.vendoring.from_lock import locked_configs
from fa4gen.vendoring.kernels import load_configs
from fa4gen.vendoring.lock import LOCK_NAME, LockedRegion, LockedTable, made_with, read_lock
from fa4gen.vendoring.model import Request
from fa4gen.vendoring.names import check_prefix
from fa4gen.vendoring.on_disk import is_free
from fa4gen.vendoring.regions import find_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.project import Project, VendoredFolder
    from fa4gen.config.settings import Setting
    from fa4gen.vendoring.lock import Lock

ADAPTERS: tuple[str, ...] = get_args(Adapter)
ALWAYS = ("c", "cmake")
"""Adapters that every folder has."""


@dataclass(frozen=True)
class Addition:
    """Kernels and adapters for a folder, as the command line names them."""

    folder: Path
    configs: tuple[str, ...]
    prefix: str | None = None
    """Not needed for a folder that is there."""
    adapters: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    """Values that replace those of ``configs``."""
    remove: tuple[str, ...] = ()
    """Names of kernels and adapters."""
    templates: Path | None = None
    force: bool = False
    """Write into a folder that is not fa4gen's, or has a damaged lock."""


@dataclass(frozen=True)
class WrittenFolder:
    """A folder that is to be written."""

    folder: Path
    request: Request
    loaded: tuple[LoadedConfig, ...]
    """The configs of all its kernels, those that it has already among them."""
    lock: Lock | None
    """The present lock; None for a folder that is to be made."""
    templates: Path | None = None


@dataclass(frozen=True)
class ReadFolder:
    """A folder that is to be checked or verified."""

    folder: Path
    asked: tuple[Request, Sequence[LoadedConfig]] | None = None
    """The project's request with its configs; None where only the lock says what it holds."""
    templates: Path | None = None
    allow: tuple[str, ...] = ()


def folder_to_add_to(addition: Addition) -> WrittenFolder:
    """Return the folder of ``addition`` with the kernels that it has and those that are added.

    Raises ConfigError for a folder of others, another prefix than the folder's, and for a name to
    remove that the folder does not have.
    """
    folder = addition.folder
    lock = _lock_to_write(folder, addition.force)
    prefix = _prefix(addition, lock)
    _refuse_unknown(addition.remove, lock, folder)
    paths, table = find_kernels(addition.configs) if addition.configs else ([], None)
    loaded = load_configs(paths, addition.settings)
    new = {item.config.name: item for item in loaded}
    kept = {item.config.name: item for item in _others(lock, [*new, *addition.remove])}
    held = [kernel.name for kernel in lock.kernels] if lock else []
    names = [name for name in held if name in new or name in kept]
    ordered = [kept.get(name) or new[name] for name in names]
    ordered += [item for item in loaded if item.config.name not in names]
    adapters = [*(lock.adapters if lock else ()), *addition.adapters]
    request = Request(
        prefix,
        optional_adapters([name for name in adapters if name not in addition.remove]),
        _joined(lock.table if lock else None, table, [item.config.name for item in ordered]),
    )
    return _written(folder, request, ordered, lock, addition.templates or templates_for(folder))


def folders_to_update(
    folder: Path | None, templates: Path | None, remove: tuple[str, ...]
) -> list[WrittenFolder]:
    """Return ``folder``, or without one those of the project, with the kernels to be written.

    A folder that the project names has the project's kernels, and any others that it has;
    others have those of their lock. Raises ConfigError.
    """
    found = []
    for target in folders_to_read(folder, templates):
        is_new = target.asked is not None and is_free(target.folder)
        lock = None if is_new else read_lock(target.folder)
        _refuse_unknown(remove, lock, target.folder)
        request, loaded = target.asked or (None, ())
        names = [item.config.name for item in loaded]
        others = _others(lock, [*names, *remove])
        if request is None:
            assert lock is not None
            request = Request(lock.prefix, lock.adapters, lock.table)
            left = [item.config.name for item in others]
            request = replace(request, table=_joined(lock.table, None, left))
        elif lock is not None:
            _refuse_prefix(request.prefix, lock, target.folder)
            request = replace(request, adapters=(*request.adapters, *lock.adapters))
        adapters = [name for name in request.adapters if name not in remove]
        request = replace(request, adapters=optional_adapters(adapters))
        kept = [item for item in loaded if item.config.name not in remove]
        every = [*kept, *others]
        found.append(_written(target.folder, request, every, lock, target.templates))
    return found


def folders_to_read(folder: Path | None, templates: Path | None = None) -> list[ReadFolder]:
    """Return ``folder``, or without one those of the project; ConfigError without a project."""
    project = find_project()
    if folder is None:
        return [_of_entry(project, entry, templates) for entry in _entries(project)]
    entry = project.entry_of(folder) if project else None
    if entry is not None:
        return [replace(_of_entry(project, entry, templates), folder=folder)]
    return [ReadFolder(folder, templates=templates or templates_for(folder))]


def templates_for(folder: Path) -> Path | None:
    """Return the templates that the project's file has for ``folder``, else for all."""
    project = find_project()
    if project is None:
        return None
    entry = project.entry_of(folder)
    return entry.templates if entry else project.templates


def optional_adapters(adapters: Sequence[str]) -> tuple[str, ...]:
    """Return the adapters that not every folder has, each once, in the table's order."""
    return tuple(name for name in ADAPTERS if name in adapters and name not in ALWAYS)


def _written(
    folder: Path,
    request: Request,
    loaded: Sequence[LoadedConfig],
    lock: Lock | None,
    templates: Path | None,
) -> WrittenFolder:
    if not loaded:
        raise ConfigError(
            Problem(
                "no kernel would be left",
                "Delete the folder, or keep one of its kernels.",
                shown_path(folder),
            )
        )
    if lock is not None and templates is None and made_with(lock):
        raise ConfigError(
            Problem(
                f"{made_with(lock)}, and none are given",
                "Give --templates DIR, or templates in the project's file; an empty DIR takes the "
                "shipped ones again.",
                shown_path(folder),
            )
        )
    return WrittenFolder(folder, request, tuple(loaded), lock, templates)


def _lock_to_write(folder: Path, force: bool) -> Lock | None:
    """Return the lock of a folder that is ours, None for one that may be filled."""
    if is_free(folder):
        return None
    try:
        return read_lock(folder)
    except ConfigError:
        if force:
            return None
        if (folder / LOCK_NAME).exists():
            raise
    raise ConfigError(
        Problem(
            f"the folder is not empty, and not one of fa4gen's: it has no {LOCK_NAME}",
            "Choose another folder with --into, or write into this one with --force: files of the "
            "same names are overwritten then, others stay.",
            shown_path(folder),
        )
    )


def _prefix(addition: Addition, lock: Lock | None) -> str:
    if addition.prefix is not None:
        check_prefix(addition.prefix)
    if lock is not None:
        if addition.prefix is not None:
            _refuse_prefix(addition.prefix, lock, addition.folder)
        return lock.prefix
    if addition.prefix is None:
        raise ConfigError(
            Problem(
                "--prefix is missing: all C names of the folder begin with it",
                "Use for example --prefix acme.",
                shown_path(addition.folder),
            )
        )
    return addition.prefix


def _refuse_prefix(prefix: str, lock: Lock, folder: Path) -> None:
    if prefix != lock.prefix:
        raise ConfigError(
            Problem(
                f"the names in this folder begin with {lock.prefix}, and {prefix} is asked for",
                f"Vendor into another folder, or keep the prefix {lock.prefix}.",
                shown_path(folder),
            )
        )


def _refuse_unknown(remove: Sequence[str], lock: Lock | None, folder: Path) -> None:
    kernels = [kernel.name for kernel in lock.kernels] if lock else []
    known = [*kernels, *(lock.adapters if lock else ())]
    unknown = [name for name in remove if name not in known]
    if unknown:
        raise ConfigError(
            *(
                Problem(
                    f"--remove {name}: the folder has no kernel or adapter of this name",
                    _nearest(name, known),
                    shown_path(folder),
                )
                for name in unknown
            )
        )


def _nearest(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"Did you mean {near[0]}?" if near else f"It has: {', '.join(known) or 'none'}."


def _others(lock: Lock | None, names: Sequence[str]) -> list[LoadedConfig]:
    """Return the configs of the lock's kernels that ``names`` does not name."""
    kernels = lock.kernels if lock else ()
    return locked_configs([kernel for kernel in kernels if kernel.name not in names])


def _joined(
    old: LockedTable | None, new: LockedTable | None, kernels: Sequence[str]
) -> LockedTable | None:
    """Return the regions of both tables for ``kernels``, the new ones first.

    Raises ConfigError for tables of two chips.
    """
    if old is not None and new is not None and old.chip != new.chip:
        raise ConfigError(
            Problem(
                f"the folder follows a table of {old.chip}, and this one is of {new.chip}",
                "One folder follows the tables of one chip: vendor the others into their own.",
            )
        )
    tables = [table for table in (new, old) if table is not None]
    found: list[LockedRegion] = []
    for region in (region for table in tables for region in table.regions):
        if region.kernel in kernels and region not in found:
            found.append(region)
    return LockedTable(chip=tables[0].chip, regions=tuple(found)) if found else None


def _entries(project: Project | None) -> tuple[VendoredFolder, ...]:
    remedy = "Name the folder; fa4gen vendor add CONFIG --into DIR --prefix P makes one."
    if project is None:
        raise ConfigError(
            Problem(
                "no folder is given, and there is no fa4gen.toml or [tool.fa4gen] here or above",
                remedy,
            )
        )
    if not project.vendored:
        raise ConfigError(
            Problem(
                "the project vendors nothing",
                'Add [[vendor]] with into = "DIR", prefix = "P" and configs = [...]. ' + remedy,
                shown_path(project.path),
            )
        )
    return project.vendored


def _of_entry(project: Project | None, entry: VendoredFolder, templates: Path | None) -> ReadFolder:
    assert project is not None
    try:
        paths, table = find_kernels(entry.configs, project.root)
    except ConfigError as error:
        where = f"configs of {shown_path(entry.folder)} in {shown_path(project.path)}"
        raise ConfigError(
            *(replace(p, message=f"{p.message} ({where})") for p in error.problems)
        ) from error
    request = Request(entry.prefix, optional_adapters(entry.adapters), table)
    loaded = tuple(load_configs(paths))
    return ReadFolder(entry.folder, (request, loaded), templates or entry.templates, entry.allow)
