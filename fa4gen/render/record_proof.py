"""Writes verify's proofs of generated kernels into their manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import NotCurrentError, Problem
from fa4gen.render.check import kernel_verdicts
from fa4gen.render.recorded_proof import with_proof
from fa4gen.render.write import write_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.render.recorded_proof import RecordedProof
    from fa4gen.render.render import RenderedKernel


def record_proof(kernel: RenderedKernel, out_dir: Path, proof: RecordedProof | None) -> None:
    """Write ``proof`` into the manifest of ``kernel``; None, of one that failed, takes it away.

    Raises NotCurrentError where the files in ``out_dir`` are not the verified ones.
    """
    require_current([kernel], out_dir)
    name = f"{kernel.name}.json"
    path = out_dir / kernel.folder / name
    text = kernel.files[name]
    write_text(path, with_proof(path.read_text("utf-8"), proof) if proof else text)


def require_current(kernels: Sequence[RenderedKernel], out_dir: Path) -> None:
    """Raise NotCurrentError for kernels with files that differ from what their configs render."""
    problems = []
    for kernel in kernels:
        wrong = [one for one in kernel_verdicts(kernel, out_dir) if one.verdict != "current"]
        if wrong:
            problems.append(
                Problem(
                    f"no proof of {kernel.name} can be recorded: this file is {wrong[0].verdict}",
                    f"Render it first: fa4gen render CONFIG -o {shown_path(out_dir)}",
                    file=shown_path(wrong[0].path),
                )
            )
    if problems:
        raise NotCurrentError(*problems)
