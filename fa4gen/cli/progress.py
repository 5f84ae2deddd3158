"""Progress of long work on stderr: a line that changes on a terminal, at times one elsewhere."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fa4gen.cli.options import RunOptions
from fa4gen.cli.output import note
from fa4gen.cli.streams import PrintableStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LINE_INTERVAL_S = 15.0
"""The least time between two lines where stderr is not a terminal."""
DRAW_INTERVAL_S = 0.1
"""The least time between two changes of the line on a terminal."""
SILENT_S = 2.0


class _Line:
    """The line of progress."""

    def __init__(self, silent_s: float | None = None) -> None:
        stream = sys.stderr
        drawn = isinstance(stream, PrintableStream) and stream.isatty() and not _writes_json()
        self._stream = stream if isinstance(stream, PrintableStream) and drawn else None
        self._interval = DRAW_INTERVAL_S if drawn else LINE_INTERVAL_S
        self._next = time.monotonic() + (
            silent_s if silent_s is not None else 0.0 if drawn else LINE_INTERVAL_S
        )

    def show(self, text: str, *, again: bool = False) -> None:
        """Show ``text`` unless it is too soon; ``again``: a message may have taken it away."""
        now = time.monotonic()
        if now < self._next and not (again and self._stream):
            return
        self._next = now + self._interval
        if self._stream:
            self._stream.draw(text)
        else:
            note(text)

    def end(self) -> None:
        """Take the line away."""
        if self._stream:
            self._stream.draw("")


class Progress:
    """How many of a number of things are done."""

    def __init__(self, total: int, what: str, line: _Line) -> None:
        self._total, self._what, self._line = total, what, line
        self._done = 0
        self._begun = time.monotonic()
        self._show()

    def advance(self, message: str = "") -> None:
        """Count one thing as done; a ``message`` is printed above the line."""
        self._done += 1
        if message:
            note(message)
        if self._done < self._total:
            self._show()

    def part(self, done: int, total: int) -> None:
        """Say how far the next thing is: ``done`` of its ``total`` parts."""
        if done < total:
            self._show(f", {done} of {total} parts of the next", again=False)

    def _show(self, more: str = "", *, again: bool = True) -> None:
        past = time.monotonic() - self._begun
        text = f"{self._done} of {self._total} {self._what} done{more}; {_clock(past)}"
        if self._done:
            text += f", left: {_clock(past / self._done * (self._total - self._done))}"
        self._line.show(text, again=again)


@contextmanager
def progress(total: int, what: str) -> Iterator[Progress]:
    """Show how many of ``total`` things ("cases") are done while the block runs."""
    line = _Line()
    try:
        yield Progress(total, what, line)
    finally:
        line.end()


@contextmanager
def pulse() -> Iterator[Callable[[str], None]]:
    """Report on work that has no known length: nothing in the first ``SILENT_S``."""
    line = _Line(SILENT_S)
    try:
        yield line.show
    finally:
        line.end()


def _writes_json() -> bool:
    import click

    context = click.get_current_context(silent=True)
    run = context.find_object(RunOptions) if context else None
    return run is not None and run.output_format == "json"


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
