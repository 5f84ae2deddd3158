"""The folder of everything that fa4gen keeps between runs to save time."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return FA4GEN_CACHE_DIR, or fa4gen under XDG_CACHE_HOME or ~/.cache; nothing is made."""
    named = os.environ.get("FA4GEN_CACHE_DIR")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if Path(base).is_absolute():  # the XDG specification says to ignore relative paths
        return Path(base) / "fa4gen"
    try:
        return Path.home() / ".cache" / "fa4gen"
    except RuntimeError:  # no home folder: nothing is kept, and storing reports that
        return Path(os.devnull) / "fa4gen"
