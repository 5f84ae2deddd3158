"""Writing one kernel, as the command does with many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.render.check import FileVerdict, find_orphans, kernel_verdicts
from fa4gen.render.write import FileOutcome, apply_writes, plan_writes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.render.render import RenderedKernel


def write_kernel(rendered: RenderedKernel, out_dir: Path, force: bool = False) -> list[FileOutcome]:
    """Plan the writes of one kernel and carry them out."""
    (outcomes,) = plan_writes([rendered], out_dir, force)
    apply_writes([outcomes])
    return outcomes


def check_generated(
    kernels: Sequence[RenderedKernel], out: Path, are_all: bool = True
) -> list[FileVerdict]:
    """The verdict of each file of the kernels, and of each orphan."""
    verdicts = [verdict for kernel in kernels for verdict in kernel_verdicts(kernel, out)]
    return verdicts + find_orphans(kernels, out, are_all=are_all)
