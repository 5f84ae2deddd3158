"""Progress of long work, on stderr: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from fa4gen.cli.output import note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINE_INTERVAL_S = 15.0
SILENT_S = 2.0


class Progress(Protocol):
    """Where work reports its progress."""

    def advance(self, message: str = "") -> None:
        """Count one thing as done; a ``message`` is printed above the bar."""


@contextmanager
def progress(total: int, what: str) -> Iterator[Progress]:
    """Show how many of ``total`` things ("cases") are done while the block runs."""
    if sys.stderr.isatty():
        with _bar(total, what) as bar:
            yield bar
    else:
        yield _Lines(total, what)


@contextmanager
def _bar(total: int, what: str) -> Iterator[Progress]:
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TextColumn(what, markup=False),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    console = Console(stderr=True, highlight=False, markup=False)
    with rich_progress.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)

        class Bar:
            def advance(self, message: str = "") -> None:
                if message:
                    bar.console.print(message)
                bar.advance(task)

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
        now = time.monotonic()
        if now - self._last >= LINE_INTERVAL_S and self._done < self._total:
            self._last = now
            note(f"{self._done} of {self._total} {self._what} done")


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
            print(f"\r{message:<{width}}", end="", file=sys.stderr, flush=True)
            width = len(message)
        else:
            note(message)

    try:
        yield show
    finally:
        if width:
            print(f"\r{'':<{width}}\r", end="", file=sys.stderr, flush=True)
