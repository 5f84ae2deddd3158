"""The option ``--templates`` of all commands that need a kernel's source."""

from __future__ import annotations

from pathlib import Path

import click

from fa4gen.cli.options import FilePath

_HELP = (
    "Your own templates: a folder that mirrors the shipped one and takes precedence, file by file."
)


def note_templates(folder: Path) -> None:
    """Say that the templates of ``folder`` are used."""
    from fa4gen.cli.output import note
    from fa4gen.config.paths import shown_path

    note(f"templates of {shown_path(folder)} take precedence over the shipped ones")


def _templates_given(
    _ctx: click.Context, _option: click.Parameter, folder: Path | None
) -> Path | None:
    """Return the folder of the command line, else that of the project's file; None without.

    Of the project's it is said that it is used: the command line does not show it.
    Raises ConfigError for a project's file that is wrong, and for a folder with a file
    that has no effect.
    """
    from fa4gen.config.selection import project_templates

    used = folder or project_templates()
    if used is not None:
        from fa4gen.render.own_templates import check_folder

        check_folder(used)
        if folder is None:
            note_templates(used)
    return used


templates_option = click.option(
    "--templates",
    type=FilePath(path_type=Path),
    metavar="DIR",
    callback=_templates_given,
    show_default="templates of the project's file",
    help=_HELP,
)
"""Gives a command the folder of own templates to use, None for the shipped ones alone."""

vendor_templates_option = click.option(
    "--templates",
    type=FilePath(path_type=Path),
    metavar="DIR",
    show_default="templates of the vendored folder in the project's file",
    help=_HELP,
)
"""Gives the folder of the command line alone: each vendored folder may have templates of its own,
which ``vendoring.targets`` looks up."""
