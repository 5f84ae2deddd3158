"""Progress of long work, on stderr: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from fa4gen.cli.options import RunOptions
from fa4gen.cli.output import note
from fa4gen.cli.streams import trusted
from fa4gen.escapes import one_line, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINE_INTERVAL_S = 15.0
SILENT_S = 2.0
_WIDE = 60
"""Columns of a terminal from which on there is room for the bar itself and the time left."""


class Progress(Protocol):
    """The sink of a command's progress."""

    def advance(self, message: str = "") -> None:
        """Count one thing as done; a ``message`` is printed above the bar."""

    def part(self, done: int, total: int) -> None:
        """Say how far the next thing is: ``done`` of its ``total`` parts."""


@contextmanager
def progress(total: int, what: str) -> Iterator[Progress]:
    """Show how many of ``total`` things ("cases") are done while the block runs.

    A bar with the time left where stderr is a terminal and no JSON was asked for.
    """
    if sys.stderr.isatty() and not _writes_json():
        with _bar(total, what) as bar:
            yield bar
    else:
        yield _Lines(total, what)


def _writes_json() -> bool:
    import click

    context = click.get_current_context(silent=True)
    run = context.find_object(RunOptions) if context else None
    return run is not None and run.output_format == "json"


@contextmanager
def _bar(total: int, what: str) -> Iterator[Progress]:
    from rich import progress as rich_progress
    from rich.console import Console

    console = Console(
        file=trusted(sys.stderr),
        highlight=False,
        markup=False,
        # no colours, and no bold either: https://no-color.org
        color_system=None if os.environ.get("NO_COLOR") else "auto",
    )
    columns: list[rich_progress.ProgressColumn] = [
        rich_progress.TextColumn("{task.fields[done]}", markup=False),
        rich_progress.TimeElapsedColumn(),
    ]
    if console.width >= _WIDE:
        columns.insert(0, rich_progress.BarColumn(bar_width=None))
        columns += [
            rich_progress.TextColumn("left:", markup=False),
            rich_progress.TimeRemainingColumn(),
        ]
    # The command's output on stdout stays there.
    with rich_progress.Progress(
        *columns, console=console, transient=True, redirect_stdout=False
    ) as bar:
        task = bar.add_task(what, total=total, done=f"0/{total} {what}")

        class Bar:
            def __init__(self) -> None:
                self._done = 0

            def advance(self, message: str = "") -> None:
                if message:
                    bar.console.print(printable(message))
                self._done += 1
                bar.update(task, completed=self._done, done=f"{self._done}/{total} {what}")

            def part(self, done: int, total_parts: int) -> None:
                text = f"{self._done}/{total} {what}"
                if console.width >= _WIDE:
                    text += f", {done}/{total_parts} of the next"
                bar.update(task, completed=self._done + done / max(total_parts, 1), done=text)

        yield Bar()


class _Lines:
    """A line with every message, and a count every ``LINE_INTERVAL_S``."""

    def __init__(self, total: int, what: str) -> None:
        self._total = total
        self._what = what
        self._done = 0
        self._last = time.monotonic()

    def advance(self, message: str = "") -> None:
        self._done += 1
        if message:
            note(message)
        if self._done < self._total:
            self._say(f"{self._done} of {self._total} {self._what} done")

    def part(self, done: int, total: int) -> None:
        if done < total:
            self._say(
                f"{self._done} of {self._total} {self._what} done, {done} of {total} parts of the "
                "next"
            )

    def _say(self, message: str) -> None:
        now = time.monotonic()
        if now - self._last >= LINE_INTERVAL_S:
            self._last = now
            note(message)


@contextmanager
def pulse() -> Iterator[Callable[[str], None]]:
    """Report on work that has no known length: nothing in the first ``SILENT_S``.

    On a terminal the message stays on one line, elsewhere there is one every LINE_INTERVAL_S.
    """
    terminal = sys.stderr.isatty()
    begin = time.monotonic()
    said = begin - LINE_INTERVAL_S
    width = 0

    def show(message: str) -> None:
        nonlocal said, width
        now = time.monotonic()
        if now - begin < SILENT_S or now - said < (0.2 if terminal else LINE_INTERVAL_S):
            return
        said = now
        if terminal:
            shown = one_line(message)
            print(f"\r{shown:<{width}}", end="", file=trusted(sys.stderr), flush=True)
            width = len(shown)
        else:
            note(message)

    try:
        yield show
    finally:
        if width:
            print(f"\r{'':<{width}}\r", end="", file=trusted(sys.stderr), flush=True)
