"""Merges two edits of one text line by line: what fa4gen writes today, and what the user changed.

Both sides are compared with the text that they came from. Edits that leave an unchanged line
between them are taken both; edits that touch or overlap are a conflict unless they are the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MARKER = re.compile(rb"^(<{7}|>{7})( |\r?$)", re.MULTILINE)


@dataclass(frozen=True)
class Merged:
    """What came of two edits."""

    data: bytes
    conflicts: int
    """Places where both sides stand, between markers."""


@dataclass(frozen=True)
class _Edit:
    """Lines ``begin`` to ``end`` of the base become ``lines``."""

    begin: int
    end: int
    lines: Sequence[bytes]


@dataclass(frozen=True)
class _Region:
    """A stretch of the base that somebody changed, and what each side has there."""

    begin: int
    end: int
    yours: Sequence[bytes]
    ours: Sequence[bytes]


def merge(base: bytes, yours: bytes, ours: bytes, our_name: str = "fa4gen") -> Merged:
    """Return ``base`` with the edits of both sides; a conflict keeps both, yours first.

    A file that the user's side has with Windows line ends keeps them, and they are no edit.
    """
    windows = _has_windows_ends(yours) and not _has_windows_ends(base)
    if windows:
        yours = yours.replace(b"\r\n", b"\n")
    lines = base.splitlines(keepends=True)
    result: list[bytes] = []
    conflicts = 0
    position = 0
    for region in _regions(lines, _split(yours), _split(ours)):
        result += lines[position : region.begin]
        position = region.end
        unchanged = lines[region.begin : region.end]
        if region.yours == region.ours or region.ours == unchanged:
            result += region.yours
        elif region.yours == unchanged:
            result += region.ours
        else:
            conflicts += 1
            result += _conflict(region, our_name)
    result += lines[position:]
    data = b"".join(_ended(result) if conflicts else result)
    return Merged(data.replace(b"\n", b"\r\n") if windows else data, conflicts)


def has_conflict(data: bytes) -> bool:
    """Whether markers of an unresolved conflict are left in ``data``, whoever put them there."""
    return _MARKER.search(data) is not None


def _regions(
    base: Sequence[bytes], yours: Sequence[bytes], ours: Sequence[bytes]
) -> Iterator[_Region]:
    """Yield the changed stretches in order, with at least one unchanged line between any two."""
    sides = (_edits(base, yours), _edits(base, ours))
    marked = [(edit, side) for side in (0, 1) for edit in sides[side]]
    marked.sort(key=lambda item: (item[0].begin, item[0].end))
    group: list[tuple[_Edit, int]] = []
    end = -1
    for edit, side in marked:
        if group and edit.begin > end:
            yield _region(base, group)
            group = []
        end = max(end, edit.end) if group else edit.end
        group.append((edit, side))
    if group:
        yield _region(base, group)


def _region(base: Sequence[bytes], group: Sequence[tuple[_Edit, int]]) -> _Region:
    begin = min(edit.begin for edit, _ in group)
    end = max(edit.end for edit, _ in group)
    texts = []
    for side in (0, 1):
        lines: list[bytes] = []
        position = begin
        for edit, whose in group:
            if whose == side:
                lines += base[position : edit.begin]
                lines += edit.lines
                position = edit.end
        texts.append(lines + list(base[position:end]))
    return _Region(begin, end, texts[0], texts[1])


def _edits(base: Sequence[bytes], side: Sequence[bytes]) -> list[_Edit]:
    matcher = SequenceMatcher(None, base, side, autojunk=False)
    return [
        _Edit(begin, end, side[first:last])
        for tag, begin, end, first, last in matcher.get_opcodes()
        if tag != "equal"
    ]


def _conflict(region: _Region, our_name: str) -> list[bytes]:
    return [
        b"<<<<<<< yours\n",
        *_ended(region.yours),
        b"=======\n",
        *_ended(region.ours),
        f">>>>>>> {our_name}\n".encode(),
    ]


def _ended(lines: Sequence[bytes]) -> list[bytes]:
    """Return ``lines`` with an end on the last one, so that a marker can follow."""
    return [line if line.endswith((b"\n", b"\r")) else line + b"\n" for line in lines]


def _split(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _has_windows_ends(data: bytes) -> bool:
    return b"\r\n" in data and data.count(b"\n") == data.count(b"\r\n")
