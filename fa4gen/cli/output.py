"""What commands print: results on stdout, everything else on stderr.

Under ``--format json`` a command prints exactly one document: its own, or that of the error that
ended it (``{"exit_status": ..., "problems": [...]}``).
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from fa4gen.cli.github import annotation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.cli.options import OutputFormat
    from fa4gen.errors import Problem

_ATTRIBUTES = ("bold", "dim")
"""Words of a style that are no colour."""


def print_json(data: Any) -> None:
    """Print ``data`` as the command's one JSON document; NaN and infinity are refused."""
    import json

    print(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str = "",
    right: Sequence[str] = (),
    styles: Mapping[str, str] | None = None,
) -> None:
    """Print a table on stdout; the columns named in ``right`` are aligned to the right.

    It is as wide as ``table_width`` says where its words allow that. ``styles`` maps a cell's whole
    text to colours such as "bold red", used on terminals only.
    """
    from fa4gen.cli.table import table_lines

    terminal = sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))
    coloured = terminal and not os.environ.get("NO_COLOR")  # nor bold: https://no-color.org
    known = styles or {}

    def paint(part: str, cell: str) -> str:
        words = known.get(cell, "").split() if cell else ["bold"]
        if not coloured or not part or not words:
            return part
        colour = next((word for word in words if word not in _ATTRIBUTES), None)
        return click.style(part, fg=colour, **{word: True for word in words if word != colour})

    cells = [[str(cell) for cell in row] for row in rows]
    lines = table_lines(columns, cells, right=right, most=table_width(), paint=paint)
    click.echo("\n".join([*([title] if title else []), *lines]), color=coloured or None)


def table_width() -> int | None:
    """Return the columns that tables may take: COLUMNS, else the terminal's; None in a pipe."""
    if (given := os.environ.get("COLUMNS", "")).isdecimal() and int(given):
        return int(given)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in GitHub's Markdown on stdout, such as for ``$GITHUB_STEP_SUMMARY``."""
    print("\n".join(markdown_lines(columns, rows)))


def markdown_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in GitHub's Markdown."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(columns), line("---" for _ in columns), *map(line, rows)]


def note(message: str) -> None:
    """Print a message for the user on stderr."""
    print(message, file=sys.stderr)


def problem_data(problem: Problem) -> dict[str, Any]:
    """Return ``problem`` as JSON data; unknown places and empty texts are left out."""
    data: dict[str, Any] = {"message": problem.message}
    for field in ("remedy", "file", "line", "column", "key", "option"):
        if value := getattr(problem, field):
            data[field] = value
    return data


def report_problems(
    problems: Sequence[Problem], exit_status: int, output_format: OutputFormat
) -> None:
    """Print the problems that ended a command."""
    for problem in problems:
        if output_format == "github":
            note(annotation("error", problem))
        else:
            note(f"error: {problem}" if not problem.place else str(problem))
    if output_format == "json":
        print_json(
            {
                "exit_status": exit_status,
                "problems": [problem_data(problem) for problem in problems],
            }
        )
