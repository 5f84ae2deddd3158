"""Where the shipped templates and configs are: in the wheel, or next to the package."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path


def license_text() -> str:
    """Return the text of the licence that generated files are under, which fa4gen itself has."""
    packaged = files("fa4gen") / "data" / "LICENSE"
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    return (Path(__file__).resolve().parent.parent / "LICENSE").read_text(encoding="utf-8")


def data_root(name: str) -> Path:
    """Return the folder called ``name``, "templates" or "configs", of this installation."""
    packaged = files("fa4gen") / "data" / name
    with as_file(packaged) as path:  # wheels are unpacked on install: the path outlives the block
        if path.is_dir():
            return path
    return Path(__file__).resolve().parent.parent / name
