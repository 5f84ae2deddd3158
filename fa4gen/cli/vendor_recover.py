"""Folders in which an update was interrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_good(folder: Path) -> None:
    """Finish what an interrupted run began, and say so."""
    from fa4gen.cli.output import note
    from fa4gen.config.paths import shown_path
    from fa4gen.vendor.transaction import is_pending, recover

    if not is_pending(folder):
        return
    kept = recover(folder)
    note(f"{shown_path(folder)}: an earlier run was interrupted; made good now.")
    for path in kept:
        note(f"kept aside: {shown_path(folder / path)}")
