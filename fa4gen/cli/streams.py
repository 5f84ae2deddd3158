"""The place where text leaves the program: nothing of others acts on a terminal or on CI."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from fa4gen.escapes import line_so_far, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WIDTH = 80
"""Columns of a terminal that does not say how many it has."""


class PrintableStream:
    """A stream of text that writes it through ``printable``.

    It has no ``buffer``: code that prints by way of that, as click does for some encodings, takes
    the stream itself then.
    """

    def __init__(self, stream: TextIO, *, forgiving: bool = False) -> None:
        """Print to ``stream``; ``forgiving``: drop what it does not take."""
        self._forgiving = (OSError,) if forgiving else ()
        self.trusted = stream
        """The target of text that is printable already, but for the parts that this program
        adds."""
        self._line = ""
        self._drawn = 0

    def draw(self, text: str) -> None:
        """Show ``text`` in a line of its own until something is written; "" takes it away."""
        most = _columns(self.trusted) - 1
        shown = one_line(text)[:most]
        with suppress(*self._forgiving):
            line = f"\r{shown:<{self._drawn}}" if shown else f"\r{'':<{self._drawn}}\r"
            self.trusted.write(line)
            self.trusted.flush()
        self._drawn = len(shown)

    def write(self, text: str | bytes) -> int:
        """Write ``text``, for which click has bytes now and then; returns its length."""
        if isinstance(text, bytes):
            text = text.decode(errors="backslashreplace")
        if self._drawn:
            self.draw("")
        shown = printable(text, self._line)
        self._line = line_so_far(shown, self._line)
        with suppress(*self._forgiving):
            self.trusted.write(shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of ``lines``."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Return the stream's attribute; ``buffer`` is missing."""
        if name in ("buffer", "trusted"):  # trusted: while a copy is made
            raise AttributeError(name)
        return getattr(self.trusted, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Let stdout and stderr be ``PrintableStream`` until the block ends.

    A stderr that takes no more, on a full disk or a closed pipe, changes nothing of a run.
    """
    out, err = sys.stdout, sys.stderr
    sys.stdout = new_out = cast("TextIO", PrintableStream(out))
    sys.stderr = new_err = cast("TextIO", PrintableStream(err, forgiving=True))
    try:
        yield
    finally:
        if sys.stdout is new_out:
            sys.stdout = out
        if sys.stderr is new_err:
            sys.stderr = err
        _let_go(err)


def _let_go(stream: TextIO) -> None:
    """Let the rest of a stream that takes no more go nowhere: Python would fail on it later."""
    try:
        stream.flush()
    except OSError:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), stream.fileno())


def _columns(stream: TextIO) -> int:
    with suppress(OSError, ValueError):
        return os.get_terminal_size(stream.fileno()).columns or WIDTH
    return WIDTH


def trusted(stream: TextIO) -> TextIO:
    """Return the stream for text that is printable, with colours or commands of this program's."""
    return stream.trusted if isinstance(stream, PrintableStream) else stream
