"""Tables and links of the documents, in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: int = 0) -> str:
    """Return a table whose last ``right`` columns are aligned to the right."""
    rule = ["---"] * (len(header) - right) + ["---:"] * right
    lines = [header, rule, *([" ".join(cell.split()) for cell in row] for row in rows)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def link(file: Path, folder: str = "../") -> str:
    """Return the Markdown link from a page in docs/ to a file of results."""
    return f"[{file.name}]({folder}{file.as_posix()})"
