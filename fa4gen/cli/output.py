"""What commands print: results on stdout, everything else on stderr.

Under ``--format json`` a command prints exactly one document: its own, or that of the error that
ended it (``{"exit_status": ..., "problems": [...]}``).
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

from fa4gen.cli.github import annotation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.cli.options import OutputFormat
    from fa4gen.errors import Problem

PIPE_WIDTH = 10_000
"""Columns of a table that goes to a file or pipe: nothing is cut or wrapped there."""
_LONG = 500
"""Rows from which on a table is written plainly on a terminal, too, where it fits: rich takes two
milliseconds a row."""


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
    all_cells = [[str(cell) for cell in row] for row in rows]
    terminal = sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))
    if not terminal or len(all_cells) >= _LONG:
        width = shutil.get_terminal_size().columns if terminal else pipe_width
        lines = _plain_table(columns, all_cells, title, right)
        if lines is not None and max(map(len, lines)) <= width:
            print("\n".join(lines))
            return

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for cells in all_cells:
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


def _plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str, right: Sequence[str]
) -> list[str] | None:
    """Return the lines of a table, as rich would write them without colours.

    None for cells of several lines or of characters that may not be one column wide.
    """
    if not all(cell.isascii() and cell.isprintable() for row in rows for cell in row):
        return None
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    aligned = [str.rjust if column in right else str.ljust for column in columns]

    def line(row: Sequence[str]) -> str:
        cells = [align(cell, n) for align, cell, n in zip(aligned, row, widths, strict=True)]
        return "  ".join(cells).rstrip()

    return [*([title] if title else []), line(columns), *map(line, rows)]


def print_markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table in GitHub's Markdown on stdout, such as for ``$GITHUB_STEP_SUMMARY``."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    print("\n".join([line(columns), line("---" for _ in columns), *map(line, rows)]))


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
