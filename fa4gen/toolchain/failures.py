"""Errors of the compilers as exceptions that the command line can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.errors import CompileError, MissingCapabilityError, Problem
from fa4gen.toolchain.diagnostics import Diagnostic, read_errors

if TYPE_CHECKING:
    from fa4gen.toolchain.model import Unit

_REMEDY = "Correct it in the template: the next render overwrites generated files."


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
