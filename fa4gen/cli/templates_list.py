"""``fa4gen templates list``: the templates, what they are for, and which are overridden."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fa4gen.cli.options import OutputFormat, configs_argument, format_option
from fa4gen.cli.own_templates import templates_option
from fa4gen.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class _Row:
    """A template that is listed."""

    name: str
    purpose: str
    path: Path
    """The shipped file."""
    own: Path | None
    """The file that overrides it."""
    is_changed: bool
    """Whether that has another text."""

    @property
    def own_words(self) -> str:
        from fa4gen.config.paths import shown_path

        if self.own is None:
            return ""
        return shown_path(self.own) + ("" if self.is_changed else " (as shipped)")


@click.command(name="list")
@configs_argument
@templates_option
@format_option
def command(configs: tuple[str, ...], templates: Path | None, output_format: OutputFormat) -> None:
    """List the templates with what they are for and the own files that override them.

    With CONFIG, those that its kernel is made from; without, all, those of vendored folders among
    them. What a template is for is said by its first comment. With --format github as a table in
    Markdown.
    """
    from fa4gen.cli.output import note, print_json, print_markdown, print_table
    from fa4gen.config.paths import shown_path

    rows = _rows(templates, _used_by(configs, templates) if configs else None)
    if output_format == "json":
        print_json(
            {
                "folder": None if templates is None else shown_path(templates),
                "templates": [
                    {
                        "name": row.name,
                        "purpose": row.purpose,
                        "path": str(row.path),
                        "overridden_by": None if row.own is None else shown_path(row.own),
                        "changed": row.is_changed,
                    }
                    for row in rows
                ],
            }
        )
        return
    columns: tuple[str, ...] = ("template", "for")
    cells: list[tuple[str, ...]] = [(row.name, row.purpose) for row in rows]
    if templates is not None:
        columns = (*columns, "overridden by")
        cells = [(row.name, row.purpose, row.own_words) for row in rows]
    if output_format == "github":
        print_markdown(columns, cells)
    else:
        print_table(columns, cells)
    overridden = sum(row.own is not None for row in rows)
    note(f"{counted(len(rows), 'template')}, {overridden} overridden")


def _used_by(configs: Sequence[str], templates: Path | None) -> set[str]:
    """Return the names of the templates that kernels are made from; ConfigError, TemplateError."""
    from fa4gen.cli.generated import project_records
    from fa4gen.config.selection import select_configs
    from fa4gen.render.batch import render_configs

    rendered = render_configs(select_configs(configs), templates, recorded=project_records())
    return {name for item in rendered for name in item.kernel.templates}


def _rows(folder: Path | None, used: set[str] | None) -> list[_Row]:
    """Return the templates in ``used``, all for None."""
    from fa4gen.render.own_templates import overriding_files, shipped_templates
    from fa4gen.render.template_words import purpose

    own = {} if folder is None else overriding_files(folder)
    rows = []
    for name, path in shipped_templates().items():
        if used is not None and name not in used:
            continue
        shipped = path.read_bytes()
        mine = own.get(name)
        changed = mine is not None and mine.read_bytes() != shipped
        rows.append(_Row(name, purpose(name, shipped.decode()), path, mine, changed))
    return rows
