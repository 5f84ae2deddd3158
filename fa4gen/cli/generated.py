"""The common part of ``render`` and ``check``: options, what is kept of a kernel, hints."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fa4gen.cli.options import FilePath
from fa4gen.counts import counted
from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.config.project import Project
    from fa4gen.config.settings import Setting
    from fa4gen.render.batch import RenderedConfig
    from fa4gen.render.check import FileVerdict
    from fa4gen.render.hashes import KernelHashes
    from fa4gen.render.records import Records
    from fa4gen.render.render import RenderedKernel

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
class Keeping:
    """The division of a run's kernels: those kept in the output folder as files, and as hashes."""

    as_files: tuple[RenderedKernel, ...] = ()
    as_hashes: tuple[RenderedKernel, ...] = ()
    are_all: bool = False
    """Whether these are all kernels of the project, so that other hashes are of no kernel."""

    def concerns(self, hashes: Mapping[str, KernelHashes]) -> bool:
        """Whether ``hashes``, which the folder keeps, are compared and written."""
        return bool(self.as_hashes) or (self.are_all and bool(hashes))


@dataclass(frozen=True)
class Invocation:
    """The user's command line, which the commands of hints repeat."""

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
        """The other options that decide which files there are, and their contents."""
        from fa4gen.config.paths import shown_path
        from fa4gen.config.selection import project_templates

        words = [word for setting in self.settings for word in setting.words]
        words += [] if self.out is None else ["-o", shown_path(self.out)]
        if self.templates not in (None, project_templates()):
            words += ["--templates", shown_path(self.templates)]
        return words

    def command(self, name: str, *flags: str) -> str:
        """Return the command line of ``fa4gen NAME`` that is about the same files."""
        return shlex.join(["fa4gen", name, *flags, *self.options, *self.arguments])

    def keeping(
        self, rendered: Sequence[RenderedConfig], folder: Path, *, writes: bool, prunes: bool
    ) -> Keeping:
        """Return how the kernels of ``rendered`` are kept in ``folder``.

        A kernel kept as hashes also has files where this run ``writes`` and its config is named,
        and where an earlier run wrote them, unless this one ``prunes``. Raises ConfigError where
        the project's ``written`` names a kernel that it does not have.
        """
        from fa4gen.config.selection import nearest_project, project_configs

        kernels = [item.kernel for item in rendered]
        project = nearest_project()
        if project is None or folder.resolve() != project.out.resolve():
            return Keeping(tuple(kernels))
        if not self.is_named:
            _check_written(project, kernels)
        without_files = [k.folder for k in kernels if not project.keeps_files_of(k.folder)]
        own = {path.resolve() for path in project_configs(project)} if without_files else set()
        hashed = {
            item.kernel.folder
            for item in rendered
            if item.kernel.folder in without_files and item.config.resolve() in own
        }
        return Keeping(
            tuple(
                kernel
                for kernel in kernels
                if kernel.folder not in hashed
                or (writes and self.is_named)
                or (not prunes and _is_there(kernel, folder))
            ),
            tuple(kernel for kernel in kernels if kernel.folder in hashed),
            are_all=not self.is_named,
        )

    @property
    def is_named(self) -> bool:
        """Whether configs are named; if not, the project's are all kernels of its folder."""
        return bool(self.configs or self.shipped)


def records_of(folder: Path) -> Records:
    """Return the records of kernels in ``folder`` and in the project's output folder.

    Raises ConfigError for a project's file or hashes that cannot be read.
    """
    from fa4gen.config.selection import nearest_project
    from fa4gen.render.records import Records

    project = nearest_project()
    return Records.below(folder, *([project.out] if project else []))


def project_records() -> Records:
    """Return the project's records of its kernels; empty where its file is invalid."""
    from fa4gen.config.selection import output_folder
    from fa4gen.render.records import Records

    try:
        return records_of(output_folder(None))
    except ConfigError:
        return Records()


def render_one(word: str, templates: Path | None, settings: Sequence[Setting]) -> RenderedConfig:
    """Return the kernel of the one config that ``word`` names; ConfigError, TemplateError."""
    from fa4gen.config.selection import select_configs
    from fa4gen.render.batch import render_configs

    paths = select_configs((word,))
    if len(paths) > 1:
        raise ConfigError(Problem(f"{word} names {counted(len(paths), 'config')}", "Name one."))
    (item,) = render_configs(paths, templates, 1, settings, project_records())
    return item


def _check_written(project: Project, kernels: Sequence[RenderedKernel]) -> None:
    from fa4gen.config.paths import shown_path
    from fa4gen.config.project import is_called

    unknown = [
        pattern
        for pattern in project.content.written
        if not any(is_called(kernel.name, kernel.folder, pattern) for kernel in kernels)
    ]
    if unknown:
        raise ConfigError(
            Problem(
                f"written: no kernel of the project is called {', '.join(unknown)}",
                "Correct or remove it: a kernel's name, arch/name, or a pattern with *.",
                file=shown_path(project.path),
                key="written",
            )
        )


def _is_there(kernel: RenderedKernel, folder: Path) -> bool:
    return any((folder / kernel.folder / name).exists() for name in kernel.files)


def refuse_prune(orphans: Sequence[FileVerdict]) -> ConfigError:
    """Return the error that shows the files to be deleted and asks for --yes."""
    from fa4gen.config.paths import shown_path

    files = counted(len(orphans), "file")
    listed = "".join(f"\n    {shown_path(orphan.path)}" for orphan in orphans)
    what = f"--prune would delete {files} that no config keeps here:{listed}"
    return ConfigError(Problem(what, "Add --yes to delete them. Nothing was written or deleted."))
