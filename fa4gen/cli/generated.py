"""What ``render`` and ``check`` share: options, and where they look for orphans."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.render.check import OrphanScope

templates_option = click.option(
    "--templates",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Your own templates: a folder that mirrors the shipped one and takes precedence.",
)

diff_option = click.option("--diff", is_flag=True, help="Show what differs, as unified diffs.")


def orphan_scope(configs: Sequence[str]) -> OrphanScope:
    """Return where orphans are looked for.

    No argument means all configs, a folder for all of its families and architectures; single
    files say nothing about the kernels of other configs.
    """
    if not configs:
        return "everything"
    return "families" if any(Path(config).is_dir() for config in configs) else "own"
