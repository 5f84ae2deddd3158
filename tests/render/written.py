"""Writing one kernel, as the command does with many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.render.write import FileOutcome, apply_writes, plan_writes

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.render.render import RenderedKernel


def write_kernel(rendered: RenderedKernel, out_dir: Path, force: bool = False) -> list[FileOutcome]:
    """Plan the writes of one kernel and carry them out."""
    (outcomes,) = plan_writes([rendered], out_dir, force)
    apply_writes([outcomes])
    return outcomes
