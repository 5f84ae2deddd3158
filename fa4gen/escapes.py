r"""Text of others (names, keys, logs) in a form that neither terminals nor CI act on.

Characters that would act where they are printed become JSON escapes, such as ``\u001b``, which JSON
reads as the same character: control characters, such as escape sequences begin with, characters
that turn the direction of a line, and the beginnings of workflow commands of GitHub Actions.
"""

from __future__ import annotations

import re

_CONTROL = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
)
_ACTIVE = re.compile(rf"[{_CONTROL}]|\r(?!\n)|(?<=##)\[")
_NOT_IN_A_LINE = re.compile(rf"[{_CONTROL}\t\n\r]|(?<=##)\[")
_COMMAND = re.compile(r"(?m)^([^\S\n]*:):")
_MAY_BEGIN_ONE = re.compile(r"[^\S\n]*:?")


def printable(text: str, line: str = "") -> str:
    """Return ``text`` as it may be printed; ``line`` is ``line_so_far`` of what was printed."""
    shown = _ACTIVE.sub(_escape, line + text)
    return _COMMAND.sub(lambda found: found[1] + _escaped(":"), shown)[len(line) :]


def one_line(text: str) -> str:
    """Return ``text`` as it may be printed within a line."""
    return _NOT_IN_A_LINE.sub(_escape, text)


def line_so_far(text: str, line: str = "") -> str:
    """Return the last line of ``line + text``, shortened to the part that ``printable`` needs."""
    last = (line + text).rpartition("\n")[2]
    signs = last[len(last.rstrip("#")) :]
    return last if _MAY_BEGIN_ONE.fullmatch(last) else f"x{signs[-2:]}"


def _escape(found: re.Match[str]) -> str:
    return _escaped(found[0])


def _escaped(character: str) -> str:
    return f"\\u{ord(character):04x}"
