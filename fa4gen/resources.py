"""Where the shipped templates and configs are: in the wheel, or next to the package."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def license_text() -> str:
    """Return the text of the licence that generated files are under, which fa4gen itself has."""
    return data_root("LICENSE").read_text(encoding="utf-8")


def data_root(name: str) -> Path:
    """Return the folder called ``name``, "templates" or "configs", of this installation."""
    packaged = _PACKAGE / "data" / name
    return packaged if packaged.exists() else _PACKAGE.parent / name
