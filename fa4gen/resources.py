"""Where the shipped templates and configs are: in the wheel, or next to the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def license_text() -> str:
    """Return the text of the licence that generated files are under, which fa4gen itself has."""
    return data_root("LICENSE").read_text(encoding="utf-8")


def license_terms() -> str:
    """Return the licence up to the end of its terms: without the advice on how to apply it."""
    end = "END OF TERMS AND CONDITIONS"
    terms, found, _ = license_text().partition(end)
    return f"{terms}{found}\n" if found else terms


def data_root(name: str) -> Path:
    """Return the folder called ``name``, "templates" or "configs", of this installation."""
    packaged = _PACKAGE / "data" / name
    return packaged if packaged.exists() else _PACKAGE.parent / name
