"""Errors of the compilers: their messages, as exceptions that the command line can show."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.errors import CompileError, MissingCapabilityError, Problem

if TYPE_CHECKING:
    from fa4gen.toolchain.model import Unit

_REMEDY = "Correct it in the template: the next render overwrites generated files."


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


class RefusedError(CompileError):
    """The compiler refused a unit."""

    # Set after construction, since exceptions travel between processes by their plain arguments.
    unit: Unit | None = None
    log: str = ""
    """The compiler's output."""
    diagnostics: tuple[Diagnostic, ...] = ()


def compile_error(unit: Unit, log: str) -> RefusedError:
    """Return the error for a compiler that refused ``unit`` and said ``log``."""
    found = read_errors(log)
    problems = [_problem(unit, diagnostic) for diagnostic in found]
    if not problems:
        last = next((line for line in reversed(log.splitlines()) if line.strip()), "no message")
        problems = [Problem(f"the compiler failed: {last.strip()}", file=f"{unit.name}.cu")]
    error = RefusedError(*problems)
    error.unit, error.log, error.diagnostics = unit, log, tuple(found)
    return error


def unsupported_arch(compiler: str, arch: str) -> MissingCapabilityError:
    """Return the error for a compiler that does not know ``arch``."""
    known = ARCHITECTURES.get(arch)
    newer = f"CUDA {known.first_cuda} or newer" if known else "a newer CUDA"
    return MissingCapabilityError(
        Problem(
            f"{compiler} cannot compile for {arch}",
            f"Use {newer}: pip install --upgrade nvidia-cuda-nvrtc.",
        )
    )


def _problem(unit: Unit, diagnostic: Diagnostic) -> Problem:
    if diagnostic.ptx_line:
        return Problem(
            f"ptxas: {diagnostic.message} (line {diagnostic.ptx_line} of the PTX)",
            _REMEDY,
            file=f"{unit.name}.cu",
        )
    return Problem(
        diagnostic.message,
        _REMEDY,
        file=diagnostic.file,
        line=diagnostic.line,
        column=diagnostic.column,
    )


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
