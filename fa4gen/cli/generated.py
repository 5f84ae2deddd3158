"""What ``render`` and ``check`` share: options, where they look for orphans, and their hints."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.options import FilePath
from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.config.project import Project
    from fa4gen.config.settings import Setting
    from fa4gen.render.check import FileVerdict, OrphanScope
    from fa4gen.render.claims import Claims
    from fa4gen.render.render import RenderedKernel

MOST_NAMED = 5
"""Kernels of other configs that are listed one by one."""

templates_option = click.option(
    "--templates",
    type=FilePath(path_type=Path),
    metavar="DIR",
    help="Your own templates: a folder that mirrors the shipped one and takes precedence.",
)

diff_option = click.option("--diff", is_flag=True, help="Show what differs, as unified diffs.")

generated_out_option = click.option(
    "-o",
    "--out",
    type=FilePath(path_type=Path),
    show_default="out of the project's file, else generated",
    metavar="DIR",
    help="Folder of the generated files: DIR/<arch>/<name>/.",
)


@dataclass(frozen=True)
class Invocation:
    """What the user wrote, which the commands of hints repeat."""

    configs: tuple[str, ...]
    shipped: bool = False
    out: Path | None = None
    templates: Path | None = None
    settings: tuple[Setting, ...] = ()

    def select(self) -> list[Path]:
        """Return the config files that are meant; ConfigError."""
        from fa4gen.config.selection import select_configs

        return select_configs(self.configs, shipped=self.shipped)

    @property
    def arguments(self) -> list[str]:
        """The words that choose the configs."""
        return ["--shipped"] if self.shipped else list(self.configs)

    @property
    def options(self) -> list[str]:
        """The other options that decide which files there are and what is in them."""
        from fa4gen.config.paths import shown_path

        words = [word for setting in self.settings for word in setting.words]
        words += [] if self.out is None else ["-o", shown_path(self.out)]
        return words + (
            [] if self.templates is None else ["--templates", shown_path(self.templates)]
        )

    def command(self, name: str, *flags: str) -> str:
        """Return the command line of ``fa4gen NAME`` that is about the same files."""
        return shlex.join(["fa4gen", name, *flags, *self.options, *self.arguments])

    @property
    def orphan_scope(self) -> OrphanScope:
        """Where orphans are looked for.

        The project's configs answer for all of its output folder, a folder for all of its families
        and architectures; single files and the shipped configs say nothing about other kernels.
        """
        if self.shipped:
            return "own"
        if not self.configs:
            return "everything"
        return "families" if any(Path(config).is_dir() for config in self.configs) else "own"


def claims_of(kernels: Sequence[RenderedKernel], out: Path, scope: OrphanScope) -> Claims:
    """Return which other kernels in ``scope`` have a config, in the project or among the shipped.

    Without a project the config files below the current folder count.
    """
    from fa4gen.config.find import shipped_configs
    from fa4gen.config.selection import nearest_project
    from fa4gen.render.check import other_kernels
    from fa4gen.render.claims import find_claims

    others = other_kernels(kernels, out, scope)
    if not others:
        return find_claims((), out)
    project = nearest_project()
    named = list(_findable(project)) if project else []
    root = project.root if project else Path.cwd()
    return find_claims(others, root, [*named, *shipped_configs()])


def _findable(project: Project) -> Iterator[Path]:
    """Yield the project's configs, without those that cannot be found: they claim nothing."""
    from contextlib import suppress

    from fa4gen.config.find import find_configs
    from fa4gen.errors import ConfigError

    for name in project.content.configs:
        with suppress(ConfigError):
            yield from find_configs([name], project.root)


def note_claims(claims: Claims, out: Path) -> None:
    """Say which kernels of the output folder were left alone since other configs have them."""
    from fa4gen.cli.output import note
    from fa4gen.config.paths import shown_path

    kernels = sorted(claims.configs)
    for kernel in kernels[:MOST_NAMED]:
        config = shown_path(claims.configs[kernel])
        note(f"{shown_path(out / kernel)} left alone: {config} renders to it.")
    if len(kernels) > MOST_NAMED:
        note(f"{len(kernels) - MOST_NAMED} more kernels left alone that other configs render to.")


def confirm_prune(orphans: Sequence[FileVerdict]) -> bool:
    """Show what is to be deleted and ask for it; ConfigError where there is nobody to ask."""
    import sys

    from fa4gen.cli.output import note
    from fa4gen.config.paths import shown_path
    from fa4gen.errors import ConfigError, Problem

    files = counted(len(orphans), "file")
    listed = "".join(f"\n    {shown_path(orphan.path)}" for orphan in orphans)
    what = f"--prune would delete {files} that no config renders to:{listed}"
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            Problem(what, "Add --yes to delete them. Nothing was written or deleted.")
        )
    note(what)
    return click.confirm("Delete them?", default=False, err=True)
