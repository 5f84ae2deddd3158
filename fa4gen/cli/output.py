"""The output of commands: results on stdout, everything else on stderr.

Under ``--format json`` a command prints exactly one document: its own, or that of the error that
ended it (``{"exit_status": ..., "problems": [...]}``).
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from fa4gen.cli.github import annotation
from fa4gen.cli.streams import trusted
from fa4gen.escapes import one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fa4gen.cli.options import OutputFormat
    from fa4gen.errors import Problem

_ATTRIBUTES = ("bold", "dim")
"""Words of a style other than colours."""


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

    cells = [[printable(str(cell)) for cell in row] for row in rows]
    head = [printable(column) for column in columns]
    lines = table_lines(head, cells, right=right, most=table_width(), paint=paint)
    text = "\n".join([*([printable(title)] if title else []), *lines])
    click.echo(text, file=trusted(sys.stdout), color=coloured or None)


def print_title(title: str) -> None:
    """Print a title on stdout, in bold on terminals."""
    text = printable(title)
    bold = text if os.environ.get("NO_COLOR") else click.style(text, bold=True)
    click.echo(bold, file=trusted(sys.stdout))


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
        return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"

    return [line(columns), line("---" for _ in columns), *map(line, rows)]


def note(message: str) -> None:
    """Print a message for the user on stderr, also while a bar is drawn there."""
    print(printable(message), file=sys.stderr)


def report(
    problem: Problem,
    output_format: OutputFormat,
    level: Literal["error", "warning", "notice"] = "error",
    text: str = "",
) -> None:
    """Print ``problem`` on stderr: an annotation for GitHub, else ``text`` or the problem's own."""
    if output_format == "github":
        annotate(level, problem)
    else:
        note(text or str(problem))


def annotate(
    level: Literal["error", "warning", "notice"], problem: Problem, *, on_stdout: bool = False
) -> None:
    """Print the annotation of ``problem`` on stderr, or on stdout."""
    stream = sys.stdout if on_stdout else sys.stderr
    print(annotation(level, problem), file=trusted(stream))


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
        report(problem, output_format, text="" if problem.place else f"error: {problem}")
    if output_format == "json":
        print_json(
            {
                "exit_status": exit_status,
                "problems": [problem_data(problem) for problem in problems],
            }
        )
