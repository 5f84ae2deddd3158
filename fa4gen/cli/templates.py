"""``fa4gen templates``: the texts that kernels are made from, and copies to change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fa4gen.cli.main import LazyCommand, LazyGroup

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Mapping[str, LazyCommand] = {
    name: LazyCommand(f"fa4gen.cli.templates_{name}", short_help)
    for name, short_help in (
        ("list", "List templates, and which of them your own override."),
        ("copy", "Copy a template into a folder of your own, to change it."),
    )
}


@click.group(name="templates", cls=LazyGroup, lazy_commands=COMMANDS)
def command() -> None:
    """Show the templates that kernels are made from, and copy those that you want to change.

    A folder of your own, given by --templates or by `templates` in the project's file, takes
    precedence over the shipped one, file by file.
    """
