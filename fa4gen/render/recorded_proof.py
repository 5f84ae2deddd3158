"""The proof of a generated kernel, as its manifest has it after ``verify --record``.

A rendered manifest says ``"proof": "rendered"``. Recording puts the verdict's word there, and next
to it ``verified``: date, seed and cases. Both stay as long as the kernel's files do: ``render`` and
``check`` take them from the manifest on disk, and compare all else byte for byte.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import NotCurrentError, Problem
from fa4gen.json_text import parse_json
from fa4gen.proof_words import EMULATED, PARTLY, RAN
from fa4gen.render.check import kernel_verdicts
from fa4gen.render.manifest import PROOF, RENDERED, with_proof_values
from fa4gen.render.write import write_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.render.render import RenderedKernel

_WEAKEST_FIRST = (RENDERED, "compiled", PARTLY, EMULATED, RAN)


@dataclass(frozen=True)
class RecordedProof:
    """The proof of a kernel, and how to repeat it."""

    proof: str
    """The proof in the words of verdicts, such as "emulated"."""
    date: str
    """YYYY-MM-DD, in UTC."""
    seed: int
    cases: int


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


def with_proof(manifest: str, proof: RecordedProof) -> str:
    """Return the text of a manifest with ``proof``; one that is there and is stronger stays."""
    data = parse_json(manifest.encode())
    if _strength(proof.proof) < _strength(data[PROOF]):
        return manifest
    how = asdict(proof)
    return with_proof_values(data, how.pop(PROOF), how)


def _strength(proof: str) -> int:
    return max(i for i, word in enumerate(_WEAKEST_FIRST) if proof.startswith(word) or not i)
