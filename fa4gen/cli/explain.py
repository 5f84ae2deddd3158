"""``fa4gen explain``: shows what a config resolves to, and why."""

from __future__ import annotations

import os
import textwrap
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from fa4gen.cli.options import (
    OutputFormat,
    configs_argument,
    format_option,
    set_option,
    shipped_option,
)

if TYPE_CHECKING:
    from fa4gen.config.settings import Setting
    from fa4gen.render.explanation import Section

PAGE_WIDTH = 120
"""Columns where the terminal's are not known and COLUMNS is not set."""
_STYLES = {"auto": "cyan", "default": "dim"}


@click.command(name="explain")
@configs_argument
@shipped_option
@set_option
@format_option
def command(
    configs: tuple[str, ...],
    shipped: bool,
    settings: tuple[Setting, ...],
    output_format: OutputFormat,
) -> None:
    """Show what configs resolve to: every value with who chose it and which limit bound it.

    Also the map of shared memory, the barriers with who arrives and who waits, the roles with
    their registers, the tensor maps, the launch and the parameters. --format json prints the plans
    as the manifests hold them.
    """
    from fa4gen.config.paths import shown_path
    from fa4gen.config.selection import select_configs
    from fa4gen.render.batch import plan_configs
    from fa4gen.render.explanation import explain
    from fa4gen.render.manifest import plan_data

    planned = plan_configs(select_configs(configs, shipped=shipped), settings)
    if output_format == "json":
        from fa4gen.cli.output import print_json

        print_json(
            {
                "kernels": [
                    {"config": shown_path(loaded.path), "plan": plan_data(plan)}
                    for loaded, plan in planned
                ]
            }
        )
        return
    for number, (loaded, plan) in enumerate(planned):
        if number:
            click.echo()
        for section in explain(plan, loaded):
            _print_section(section)


def _print_section(section: Section) -> None:
    from fa4gen.cli.output import print_table

    if section.title:
        title = section.title
        click.echo(title if os.environ.get("NO_COLOR") else click.style(title, bold=True))
    width = get_terminal_size((PAGE_WIDTH, 0)).columns
    for line in section.lines:
        drawn = any("\u2500" <= character <= "\u257f" for character in line)
        for part in [line] if drawn else textwrap.wrap(line, width - 2) or [""]:
            click.echo(f"  {part}".rstrip())
    if section.columns:
        print_table(
            section.columns, section.rows, right=section.right, styles=_STYLES, pipe_width=width
        )
    click.echo()
