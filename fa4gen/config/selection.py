"""The configs and the output folder of a command whose command line does not name them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.find import find_configs, shipped_configs
from fa4gen.config.paths import shown_path
from fa4gen.config.project_place import project_files
from fa4gen.config.text import read_text
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.config.project import Project

DEFAULT_OUT = Path("generated")


def select_configs(arguments: Sequence[str], *, shipped: bool = False) -> list[Path]:
    """Return the config files that a command is about, see ``find_configs``.

    Those of ``arguments``; all shipped ones with ``shipped``; else those of the project that the
    current folder is in. An argument that is no path may be the name of one of the project's
    kernels, before it is that of a shipped config. Raises ConfigError where there is none of
    these, or both of the first.
    """
    if shipped and arguments:
        raise ConfigError(Problem("CONFIG and --shipped exclude each other", "Give one of them."))
    if shipped:
        return shipped_configs()
    if not arguments:
        return _configs_of_project()
    named: list[str | Path] = []
    for argument in arguments:
        named += _of_project(argument) or [argument]
    return find_configs(named)


def output_folder(out: Path | None) -> Path:
    """Return ``out``, else the project's output folder, else ``generated``.

    Raises ConfigError when the project's file is wrong.
    """
    if out is not None:
        return out
    project = nearest_project()
    return DEFAULT_OUT if project is None else project.out


def project_templates() -> Path | None:
    """Return the project's folder of own templates, None without one.

    Raises ConfigError when the project's file is wrong and may name one: a command about other
    configs does without a file that does not.
    """
    try:
        project = nearest_project()
    except ConfigError:
        if any("templates" in read_text(path, "project") for path in project_files()):
            raise
        return None
    return None if project is None else project.templates


def nearest_project() -> Project | None:
    """Return ``find_project()``, whose module is imported only where there is a file to read."""
    if next(project_files(), None) is None:
        return None
    from fa4gen.config.project import find_project

    return find_project()


def project_configs(project: Project) -> list[Path]:
    """Return the config files that ``project`` names, none where it names none; ConfigError."""
    if not project.content.configs:
        return []
    try:
        return find_configs(project.content.configs, project.root)
    except ConfigError as error:
        where = f"configs of {shown_path(project.path)}"
        raise ConfigError(
            *(replace(p, message=f"{p.message} ({where})") for p in error.problems)
        ) from error


def _of_project(name: str) -> list[Path]:
    """Return the configs of the project with a kernel called ``name``, a word and not a path."""
    if not name.isidentifier() or Path(name).exists():
        return []
    try:
        project = nearest_project()
        configs = project_configs(project) if project else []
    except ConfigError:  # a command about other configs may do without it
        return []
    return [path for path in configs if path.stem == name or _kernel_name(path, name) == name]


def _kernel_name(path: Path, word: str) -> str:
    """Return the name of the kernel of a config that has ``word`` somewhere; "" for others."""
    from fa4gen.config.load import load_config

    try:
        return load_config(path).config.name if word.encode() in path.read_bytes() else ""
    except (OSError, ConfigError):
        return ""


def _configs_of_project() -> list[Path]:
    project = nearest_project()
    if project is None:
        raise ConfigError(
            Problem(
                "no CONFIG is given, and there is no fa4gen.toml or [tool.fa4gen] here or above",
                "Name config files, folders or shipped configs; or write configs = [...] to "
                "fa4gen.toml; or take all that come with fa4gen by --shipped.",
            )
        )
    configs = project_configs(project)
    if not configs:
        raise ConfigError(
            Problem(
                "no CONFIG is given, and the project names no configs",
                'Add configs = ["FILE or folder", ...], or name CONFIG.',
                shown_path(project.path),
            )
        )
    return configs
