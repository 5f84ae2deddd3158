"""Merges two edits of one text line by line: what fa4gen writes today, and what the user changed.

Both sides are compared with the text that they came from, of which hashes of its lines are enough:
a merge writes lines of the sides only. Blank lines, those of closing brackets, and those that
continue a comment or an expression belong to the line before them, which counts as one with them.
So do a comment and the line after it, the head of a block and its first line. Each line is hashed
together with the one before it, so an edit shows in two hashes. Edits that leave two unchanged
lines between them are taken both; edits that are nearer or overlap are a conflict unless they are
the same. Edits of one side with fewer than three unchanged lines between them count as one.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEY_BITS = 10
"""Of a hash: the keys are the largest part of what a folder keeps beside its files.

Two lines of one key that both sides still have are found, and become a conflict. A line that the
user edited and fa4gen changed as well is taken for unchanged only if both keys that it is part of
stay the same by chance: one of 2**20."""
LEAST_RUN = 2
"""Keys in a row that two edits of one side have between them: fewer are the same by chance in
most changes of some tens of lines, two in one of a thousand."""
_CLOSING = re.compile(rb"[\s)}\];,]*")
"""A line that says nothing without those before it."""
_COMMENT = re.compile(rb"\s*(//|/\*|[*#]\s)")
"""The start of a line that is a comment."""
_MORE_COMMENT = re.compile(rb"\s*(//|[*#]\s|\*/)")
"""The start of one that continues it."""
_OPEN = re.compile(rb".*[,(\[=+\-|&?:<\\]\s*", re.DOTALL)
"""A line that the next one continues."""
_MARKER = re.compile(rb"^(<{7}|>{7})( |\r?$)", re.MULTILINE)


_HEAD = re.compile(rb".*\{\s*", re.DOTALL)
"""A line that begins a block."""

Grouping = Literal["blocks", "statements", "closing", "lines"]
"""Which lines count with the one before: what a comment is about and a block's first line as well,
those that continue it, closing ones, none. Folders of older versions have the latter three."""


@dataclass(frozen=True)
class Merged:
    """What came of two edits."""

    data: bytes
    conflicts: int
    """Places where both sides stand, between markers."""


@dataclass(frozen=True)
class _Edit:
    """Lines ``begin`` to ``end`` of the base became lines ``first`` to ``last`` of a side."""

    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True)
class _Region:
    """A stretch that somebody changed: what each side has there, and who changed it."""

    yours: tuple[int, int]
    ours: tuple[int, int]
    sides: frozenset[int]
    """0: yours, 1: ours."""


@dataclass(frozen=True)
class LineKeys:
    """The keys of a text's lines: the base of a later merge."""

    keys: tuple[int, ...]
    """One more than lines: the end counts as an empty line."""
    bits: int = KEY_BITS
    """Of each, from the highest of the hash on."""
    grouping: Grouping = "blocks"
    """Which lines count with the line before them."""


def line_keys(data: bytes) -> LineKeys:
    """Return the keys of the lines of ``data``."""
    return LineKeys(tuple(_keys(_lines(data, "blocks"), KEY_BITS)))


def merge(base: LineKeys, yours: bytes, ours: bytes, our_name: str = "fa4gen") -> Merged:
    """Return the text behind ``base`` with the edits of both sides; a conflict keeps both.

    ``base`` are the ``line_keys`` of the text that both sides came from. A file that the user's
    side has with Windows line ends keeps them, and they are no edit.
    """
    windows = _has_windows_ends(yours) and not _has_windows_ends(ours)
    if windows:
        yours = yours.replace(b"\r\n", b"\n")
    your_lines, our_lines = (_lines(side, base.grouping) for side in (yours, ours))
    result: list[bytes] = []
    conflicts = 0
    your_position = our_position = 0

    def unchanged(your_end: int, our_end: int) -> int:
        mine, other = your_lines[your_position:your_end], our_lines[our_position:our_end]
        if mine == other:
            result.extend(other)
            return 0
        result.extend(_conflict(mine, other, our_name))  # two lines of one key
        return 1

    sides = (_keys(lines, base.bits) for lines in (your_lines, our_lines))
    for region in _regions(base.keys, *sides):
        conflicts += unchanged(region.yours[0], region.ours[0])
        mine, other = your_lines[slice(*region.yours)], our_lines[slice(*region.ours)]
        your_position, our_position = region.yours[1], region.ours[1]
        if mine == other or region.sides == {1}:
            result += other
        elif region.sides == {0}:
            result += mine
        else:
            conflicts += 1
            result += _conflict(mine, other, our_name)
    conflicts += unchanged(len(your_lines), len(our_lines))
    data = b"".join(_ended(result) if conflicts else result)
    return Merged(data.replace(b"\n", b"\r\n") if windows else data, conflicts)


def has_conflict(data: bytes) -> bool:
    """Whether markers of an unresolved conflict are left in ``data``, whoever put them there."""
    return _MARKER.search(data) is not None


def _lines(data: bytes, grouping: Grouping) -> list[bytes]:
    """Return groups of lines. Each of a file's first comment is one: it has the version."""
    lines: list[bytes] = []
    above = b""
    at_top = True
    for line in data.splitlines(keepends=True):
        was_at_top, at_top = at_top, at_top and bool(_COMMENT.match(line))
        own = grouping if not was_at_top or grouping != "blocks" else "statements"
        if lines and not at_top and _belongs(line, above, own):
            lines[-1] += line
        else:
            lines.append(line)
        above = line
    return [*lines, b""]


def _belongs(line: bytes, above: bytes, grouping: Grouping) -> bool:
    """Whether a line counts as one with that above it."""
    if grouping != "lines" and _CLOSING.fullmatch(line):
        return True
    if grouping not in ("statements", "blocks"):
        return False
    if _COMMENT.match(above):
        return grouping == "blocks" or bool(_MORE_COMMENT.match(line))
    return bool(_OPEN.fullmatch(above) or (grouping == "blocks" and _HEAD.fullmatch(above)))


def _keys(lines: Sequence[bytes], bits: int) -> list[int]:
    pairs = zip((b"", *lines), lines, strict=False)
    hashes = (hashlib.sha256(b"\0".join(pair)).digest() for pair in pairs)
    return [int.from_bytes(digest[:4], "big") >> (32 - bits) for digest in hashes]


def _regions(base: Sequence[int], yours: Sequence[int], ours: Sequence[int]) -> Iterator[_Region]:
    """Yield the changed stretches in order, with at least one unchanged line between any two."""
    marked = [(edit, 0) for edit in _edits(base, yours)] + [(e, 1) for e in _edits(base, ours)]
    marked.sort(key=lambda item: (item[0].begin, item[0].end))
    shifts = (0, 0)
    group: list[tuple[_Edit, int]] = []
    end = -1
    for edit, side in marked:
        if group and edit.begin > end:
            region, shifts = _region(group, shifts)
            yield region
            group = []
        end = max(end, edit.end)
        group.append((edit, side))
    if group:
        yield _region(group, shifts)[0]


def _region(
    group: Sequence[tuple[_Edit, int]], shifts: tuple[int, int]
) -> tuple[_Region, tuple[int, int]]:
    """Return the region of ``group``, and how far each side is ahead of the base behind it."""
    begin = min(edit.begin for edit, _ in group)
    end = max(edit.end for edit, _ in group)
    grown = [
        sum((e.last - e.first) - (e.end - e.begin) for e, whose in group if whose == side)
        for side in (0, 1)
    ]
    after = (shifts[0] + grown[0], shifts[1] + grown[1])
    region = _Region(
        (begin + shifts[0], end + after[0]),
        (begin + shifts[1], end + after[1]),
        frozenset(side for _, side in group),
    )
    return region, after


def _edits(base: Sequence[int], side: Sequence[int]) -> list[_Edit]:
    """Return what became of the lines of ``base``; a single key in common may be chance."""
    matcher = SequenceMatcher(None, base, side, autojunk=False)
    edits: list[_Edit] = []
    for tag, begin, end, first, last in matcher.get_opcodes():
        if tag == "equal":
            continue
        if edits and begin - edits[-1].end < LEAST_RUN:
            before = edits.pop()
            begin, first = before.begin, before.first
        edits.append(_Edit(begin, end, first, last))
    return edits


def _conflict(yours: Sequence[bytes], ours: Sequence[bytes], our_name: str) -> list[bytes]:
    """Return both sides between markers, and outside of them how they begin or end alike."""
    begin = _common(yours, ours)
    end = _common(yours[begin:][::-1], ours[begin:][::-1])
    return [
        *yours[:begin],
        b"<<<<<<< yours\n",
        *_ended(yours[begin : len(yours) - end]),
        b"=======\n",
        *_ended(ours[begin : len(ours) - end]),
        f">>>>>>> {our_name}\n".encode(),
        *yours[len(yours) - end :],
    ]


def _common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Return how many lines both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _ended(lines: Sequence[bytes]) -> list[bytes]:
    """Return ``lines`` with an end on the last one, so that a marker can follow."""
    return [line if line.endswith((b"\n", b"\r")) else line + b"\n" for line in lines if line]


def _has_windows_ends(data: bytes) -> bool:
    return b"\r\n" in data and data.count(b"\n") == data.count(b"\r\n")
