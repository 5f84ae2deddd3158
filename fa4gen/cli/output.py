"""What commands print: results on stdout, everything else on stderr.

Under ``--format json`` a command prints exactly one document: its own, or that of the error that
ended it (``{"exit_status": ..., "problems": [...]}``).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from fa4gen.cli.github import annotation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.cli.options import OutputFormat
    from fa4gen.errors import Problem

PIPE_WIDTH = 10_000
"""Columns of a table that goes to a file or pipe: nothing is cut or wrapped there."""


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
    pipe_width: int = PIPE_WIDTH,
) -> None:
    """Print a table on stdout; the columns named in ``right`` are aligned to the right.

    ``styles`` maps a cell's whole text to a colour, used on terminals only. Where stdout is no
    terminal, cells are wrapped at ``pipe_width`` columns.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        cells = [str(cell) for cell in row]
        table.add_row(*(Text(cell, style=(styles or {}).get(cell, "")) for cell in cells))
    console = Console(
        width=None if sys.stdout.isatty() else pipe_width,
        highlight=False,
        # no colours, and no bold either: https://no-color.org
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


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
    if output_format == "json":
        print_json(
            {
                "exit_status": exit_status,
                "problems": [problem_data(problem) for problem in problems],
            }
        )
    for problem in problems:
        if output_format == "github":
            note(annotation("error", problem))
        else:
            note(f"error: {problem}" if not problem.place else str(problem))
