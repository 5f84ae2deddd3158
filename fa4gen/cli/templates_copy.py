"""``fa4gen templates copy``: one shipped template into a folder of the user's."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from fa4gen.cli.completion import complete_template
from fa4gen.cli.options import FilePath, OutputFormat, format_option
from fa4gen.errors import ConfigError, Problem

DEFAULT = Path("templates")


@click.command(name="copy")
@click.argument("name", shell_complete=complete_template)
@click.option(
    "--to",
    type=FilePath(path_type=Path, file_okay=False),
    show_default="templates of the project's file, else templates",
    metavar="DIR",
    help="Folder of your own templates.",
)
@format_option
def command(name: str, to: Path | None, output_format: OutputFormat) -> None:
    """Copy the shipped template NAME into DIR, under the same name, for you to change.

    NAME is as `fa4gen templates list` has it. A file that exists is never overwritten.
    """
    from fa4gen.cli.output import note, print_json
    from fa4gen.config.paths import shown_path
    from fa4gen.config.selection import project_templates
    from fa4gen.render.own_templates import nearest, shipped_templates
    from fa4gen.render.write import write_files

    of_project = project_templates()
    folder = to or of_project or DEFAULT
    source = shipped_templates().get(name)
    if source is None:
        remedy = f"{nearest(name)} `fa4gen templates list` shows all."
        raise ConfigError(Problem(f"there is no template {name!r}", remedy))
    target = folder / name
    if target.exists() or target.is_symlink():
        raise ConfigError(
            Problem(
                "there is such a file already, and it may have your changes",
                "Move it away, or copy to another folder with --to.",
                shown_path(target),
            )
        )
    write_files({target: source.read_bytes()})
    if output_format == "json":
        print_json({"template": name, "path": shown_path(target)})
    else:
        click.echo(f"created   {shown_path(target)}")
    if of_project is None or folder.resolve() != of_project.resolve():
        words = shlex.quote(shown_path(folder))
        note(
            f"It counts with --templates {words}, or with templates = ... of that folder in the "
            "project's file."
        )
