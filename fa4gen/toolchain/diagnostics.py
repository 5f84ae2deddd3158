"""A compiler's error messages as problems with places in the generated file."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SOURCE_ERROR = re.compile(
    r"^(?P<file>[^\s(]+)\((?P<line>\d+)\): (?:catastrophic )?error:? ?(?P<text>.*)$"
)
_PTX_ERROR = re.compile(
    r"^ptxas (?:application ptx input|\S+), line (?P<line>\d+); error\s*: (?P<text>.*)$"
)
_PTXAS_FATAL = re.compile(r"^ptxas (?:fatal|error)\s*: (?P<text>.*)$")
_HOST_ERROR = re.compile(
    r"^(?P<file>[^\s:]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$"
)
_CARET = re.compile(r"^\s*\^\s*$")


@dataclass(frozen=True)
class Diagnostic:
    """One error of a compiler. Lines and columns count from 1; 0 is unknown."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    ptx_line: int = 0


def read_errors(log: str) -> list[Diagnostic]:
    """Return the errors in the log of NVRTC or nvcc, in its order; warnings are left out."""
    lines = log.splitlines()
    found: list[Diagnostic] = []
    for number, line in enumerate(lines):
        if match := _SOURCE_ERROR.match(line):
            column, more = _column(lines[number + 1 :])
            text = " ".join([match["text"], *more])
            found.append(Diagnostic(text, match["file"], int(match["line"]), column))
        elif match := _PTX_ERROR.match(line):
            found.append(Diagnostic(match["text"], ptx_line=int(match["line"])))
        elif match := _HOST_ERROR.match(line):
            place = (match["file"], int(match["line"]), int(match["column"]))
            found.append(Diagnostic(match["text"], *place))
        elif (match := _PTXAS_FATAL.match(line)) and not found:
            found.append(Diagnostic(f"ptxas: {match['text']}"))
    return found


def _column(following: list[str]) -> tuple[int, list[str]]:
    """Return the column of the caret below an error, and lines of text between the two.

    The compiler echoes the source line, indented by two, and sets a caret below it.
    """
    for count, line in enumerate(following[:6]):
        if _CARET.match(line):
            return line.index("^") - 1, [text.strip() for text in following[: count - 1]]
        if not line.strip():
            break
    return 0, []
