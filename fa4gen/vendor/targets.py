"""Which folders a call of ``fa4gen vendor`` is about, and what each is to hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from fa4gen.config.paths import shown_path
from fa4gen.config.project import Adapter, find_project
from fa4gen.errors import ConfigError, Problem
from fa4gen.vendor.kernels import load_configs
from fa4gen.vendor.lock import read_lock
from fa4gen.vendor.locked import locked_configs, locked_request
from fa4gen.vendor.model import Request
from fa4gen.vendor.names import check_prefix
from fa4gen.vendor.regions import find_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.project import Project, VendoredFolder
    from fa4gen.config.settings import Setting

ADAPTERS: tuple[str, ...] = get_args(Adapter)
ALWAYS = ("c", "cmake")
"""Adapters that need no asking for."""


@dataclass(frozen=True)
class Asked:
    """What the command line says; empty where it leaves that to the project's file or the lock."""

    configs: tuple[str, ...] = ()
    prefix: str | None = None
    adapters: tuple[str, ...] = ()
    templates: Path | None = None
    settings: tuple[Setting, ...] = ()
    """Of ``configs``."""


@dataclass(frozen=True)
class Target:
    """One folder."""

    folder: Path
    request: Request | None
    """What it is to hold; None where only its lock says so."""
    loaded: tuple[LoadedConfig, ...] = ()
    """The configs of ``request``."""
    templates: Path | None = None
    allow: tuple[str, ...] = ()

    @property
    def asked(self) -> tuple[Request, Sequence[LoadedConfig]] | None:
        """The request with its configs."""
        return (self.request, self.loaded) if self.request else None


def targets_to_write(into: Path | None, asked: Asked) -> list[Target]:
    """Return what ``fa4gen vendor`` without an action writes: one folder, or the project's.

    Raises ConfigError when it is not clear what is to be written.
    """
    if into is not None and asked.configs and asked.prefix is not None:
        paths, table = find_kernels(asked.configs)
        adapters = beside_c(asked.adapters)
        request = Request(check_prefix(asked.prefix), asked.configs, adapters, table)
        loaded = load_configs(paths, asked.settings)
        return [Target(into, request, tuple(loaded), asked.templates)]
    project = find_project()
    entries = _entries(
        project, into, "fa4gen vendor CONFIG --into DIR --prefix P writes one folder."
    )
    assert project is not None
    return [_of_entry(project, entry, asked, len(entries) == 1) for entry in entries]


def targets_with_lock(folder: Path | None, asked: Asked) -> list[Target]:
    """Return the folders of an action: ``folder``, or without one those of the project.

    A folder that the project names has the project's configs; others are what their lock says,
    with ``request`` None unless ``asked`` changes something.
    """
    project = find_project()
    if folder is None:
        entries = _entries(
            project, None, "Give the folder: --check DIR, --update DIR, --verify DIR."
        )
        assert project is not None
        return [_of_entry(project, entry, asked, len(entries) == 1) for entry in entries]
    entry = project.entry_of(folder) if project else None
    if project is not None and entry is not None:
        return [replace(_of_entry(project, entry, asked, True), folder=folder)]
    if not (asked.configs or asked.prefix or asked.adapters):
        return [Target(folder, None, templates=asked.templates)]
    lock = read_lock(folder)
    request = _changed(locked_request(lock), asked)
    if asked.configs:
        paths, table = find_kernels(asked.configs)
        request = replace(request, table=table)
        loaded = load_configs(paths, asked.settings)
    else:
        loaded = locked_configs(lock)
    return [Target(folder, request, tuple(loaded), asked.templates)]


def beside_c(adapters: Sequence[str]) -> tuple[str, ...]:
    """Return the adapters that have to be asked for, each once, in the table's order."""
    return tuple(name for name in ADAPTERS if name in adapters and name not in ALWAYS)


def _entries(project: Project | None, into: Path | None, remedy: str) -> tuple[VendoredFolder, ...]:
    if project is None:
        raise ConfigError(
            Problem(
                "no folder is given, and there is no fa4gen.toml or [tool.fa4gen] here or above",
                remedy,
            )
        )
    if into is not None:
        entry = project.entry_of(into)
        if entry is not None:
            return (entry,)
        raise ConfigError(
            Problem(
                f"the project does not name the folder {into}", remedy, shown_path(project.path)
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


def _of_entry(project: Project, entry: VendoredFolder, asked: Asked, alone: bool) -> Target:
    if not alone and (asked.configs or asked.prefix or asked.adapters):
        raise ConfigError(
            Problem(
                "the project has several vendored folders: it is not clear for which of them the "
                "configs, --prefix or --adapter are",
                "Say which folder, or change the project's file.",
                shown_path(project.path),
            )
        )
    request = _changed(Request(entry.prefix, entry.configs, beside_c(entry.adapters)), asked)
    try:
        paths, table = (
            find_kernels(asked.configs)
            if asked.configs
            else find_kernels(entry.configs, project.root)
        )
    except ConfigError as error:
        where = f"configs of {shown_path(entry.folder)} in {shown_path(project.path)}"
        raise ConfigError(
            *(replace(p, message=f"{p.message} ({where})") for p in error.problems)
        ) from error
    loaded = tuple(load_configs(paths, asked.settings))
    request = replace(request, table=table)
    return Target(entry.folder, request, loaded, asked.templates or entry.templates, entry.allow)


def _changed(request: Request, asked: Asked) -> Request:
    return Request(
        request.prefix if asked.prefix is None else check_prefix(asked.prefix),
        asked.configs or request.configs,
        beside_c(asked.adapters) if asked.adapters else request.adapters,
        request.table,
    )
