"""Findings of the emulator in text, with the line of the project's source that they are about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fa4gen.emulator.report import Finding

_SUFFIXES: Final = (".cu", ".cuh", ".h", ".hpp", ".inl", ".cpp", ".cc", ".c", ".py", ".mojo")
_MAX_BYTES: Final = 8 << 20


@dataclass(frozen=True)
class OwnLine:
    """A line of a source below the current folder."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.name}:{self.line}: {self.text}"


def own_line(finding: Finding) -> OwnLine | None:
    """Return the line of the user's source that a finding is about, if it is here.

    That is the innermost place in a ``.cu`` file, or in any source: the line in a library's header
    says less.
    """
    places = [finding.source, *finding.source.calls] if finding.source else []
    found = [
        OwnLine(Path(one.path), one.line, lines[one.line - 1].strip())
        for one in places
        if one.line <= len(lines := _lines(one.path))
    ]
    return next((one for one in found if one.path.suffix == ".cu"), found[0] if found else None)


def finding_text(finding: Finding, note: str = "") -> str:
    """Return a finding, ``note`` and, on a line of its own, the text of the source."""
    own = own_line(finding)
    return f"{finding}{note}\n    {own}" if own else f"{finding}{note}"


def finding_data(finding: Finding) -> dict[str, object]:
    """Return a finding as JSON data, with the text of the source."""
    own = own_line(finding)
    return {
        "kind": finding.kind,
        "severity": finding.severity.value,
        "message": finding.message,
        "where": finding.where,
        "inlined_at": [str(one) for one in finding.source.calls] if finding.source else [],
        "source": own.text if own else None,
        "line": finding.line,
        "earlier_line": finding.earlier,
        "who": finding.who,
        "count": finding.count,
        "ctas": finding.ctas,
    }


def _lines(path: str) -> tuple[str, ...]:
    """Return the lines of a source below the current folder.

    PTX names its sources, and may be anybody's: of other files nothing is shown.
    """
    try:
        file, folder = Path(path).resolve(), Path.cwd().resolve()
        if not file.is_relative_to(folder) or file.suffix not in _SUFFIXES or not file.is_file():
            return ()
        about = file.stat()
        return _read(file, about.st_mtime_ns) if about.st_size <= _MAX_BYTES else ()
    except (OSError, ValueError):
        return ()


@lru_cache(maxsize=16)
def _read(file: Path, _changed: int) -> tuple[str, ...]:
    return tuple(file.read_text(encoding="utf-8", errors="replace").splitlines())
