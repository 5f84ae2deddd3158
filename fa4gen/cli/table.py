"""Tables as lines of text: cells are wrapped between words, and no word is broken.

A text that a user copies from a table (a name, a path, a hash) is a word, so it stays whole, even
where the table is wider than the terminal for it.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

GAP = "  "
"""Between columns."""


def table_lines(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    most: int | None = None,
    paint: Callable[[str, str], str] = lambda part, _cell: part,
) -> Iterator[str]:
    """Yield the lines of a table, its head first.

    A line has at most ``most`` characters where words allow that; None sets no limit. ``right`` are
    the columns aligned to the right. ``paint`` gets a part of a cell and the whole of it, and
    returns the part with its colour; for the head the whole is "".
    """
    table = [list(columns), *map(list, rows)]
    widths = _widths(table, most)
    aligned = [column in right for column in columns]
    for number, row in enumerate(table):
        parts = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*parts, fillvalue=""):
            cells = [
                _aligned(part, paint(part, cell if number else ""), width, at_right)
                for part, cell, width, at_right in zip(line, row, widths, aligned, strict=True)
            ]
            yield GAP.join(cells).rstrip()


def _widths(table: Sequence[Sequence[str]], most: int | None) -> list[int]:
    """Return the width of each column: its longest line, or less, down to its longest word."""
    columns = list(zip(*table, strict=True))
    longest = [
        max(cell_width(line) for cell in cells for line in _lines(cell)) for cells in columns
    ]
    if most is None or sum(longest) + len(GAP) * (len(longest) - 1) <= most:
        return longest
    widths = [max(cell_width(word) for cell in cells for word in _words(cell)) for cells in columns]
    spare = max(most - len(GAP) * (len(widths) - 1) - sum(widths), 0)
    wishes = sorted((longest[i] - width, i) for i, width in enumerate(widths))
    for others, (wish, column) in zip(range(len(wishes), 0, -1), wishes, strict=True):
        given = min(wish, spare // others)  # the smallest wish first: its rest goes to others
        widths[column] += given
        spare -= given
    return widths


def _lines(cell: str) -> list[str]:
    return cell.split("\n")


def _words(cell: str) -> list[str]:
    return cell.split() or [""]


def wrapped(cell: str, width: int) -> list[str]:
    """Return the lines of a cell or sentence, broken at spaces where it is too long."""
    done = []
    for line in _lines(cell):
        if cell_width(line) <= width:
            done.append(line)
            continue
        part = ""
        for word in line.split():
            longer = f"{part} {word}" if part else word
            if part and cell_width(longer) > width:
                done.append(part)
                longer = word
            part = longer
        done.append(part)
    return done


def _aligned(part: str, painted: str, width: int, at_right: bool) -> str:
    space = " " * (width - cell_width(part))
    return f"{space}{painted}" if at_right else f"{painted}{space}"


def cell_width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    wide = sum(east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(combining(character)) for character in text)
