"""The mark by which a file says that fa4gen wrote it."""

from __future__ import annotations

import re

_MARK = re.compile(rb'(?:[Gg]enerated by|Written by|"generator": ")[\s*/#]*fa4gen [0-9]')
_HEAD = 4096
"""Bytes in which the mark is looked for."""


def has_mark(data: bytes) -> bool:
    """Whether the head of a file says that fa4gen wrote it."""
    return _MARK.search(data[:_HEAD]) is not None
