"""The data of this installation (templates, configs, licence) and the CPUs of this machine."""

from __future__ import annotations

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def license_text() -> str:
    """Return the text of the licence that generated files are under, which fa4gen itself has."""
    return data_root("LICENSE").read_text(encoding="utf-8")


def license_terms() -> str:
    """Return the licence up to the end of its terms: without the advice on how to apply it.

    Lines are not indented: SPDX's matching takes any blanks for the same.
    """
    end = "END OF TERMS AND CONDITIONS"
    terms, _, _ = license_text().partition(end)
    lines = (line.strip() for line in f"{terms}{end}".strip().splitlines())
    return "\n".join(lines) + "\n"


def data_root(name: str) -> Path:
    """Return the folder called ``name``, "templates" or "configs", of this installation."""
    packaged = _PACKAGE / "data" / name
    return packaged if packaged.exists() else _PACKAGE.parent / name
