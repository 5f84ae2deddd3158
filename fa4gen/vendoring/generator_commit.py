"""The identity of this fa4gen: its version, and the commit where it runs from a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

import fa4gen


def generator_commit() -> str | None:
    """Return the commit of the checkout that this package runs from, None for an installed one.

    Forty hexadecimal digits, with "+" behind them where tracked files differ from the commit.
    """
    root = Path(fa4gen.__file__).resolve().parent.parent
    if not (root / ".git").exists() or not (root / "templates").is_dir():
        return None
    commit = _git(root, "rev-parse", "HEAD")
    if not commit:
        return None
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", "fa4gen", "templates")
    return commit if changed == "" else f"{commit}+"


def _git(root: Path, *arguments: str) -> str | None:
    """Return the output of git, None when it fails."""
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
