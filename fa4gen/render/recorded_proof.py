"""The proof of a generated kernel, as its manifest has it after ``verify --record``.

A rendered manifest says ``"proof": "rendered"``. Recording puts the verdict's word there, and next
to it ``verified``: date, seed and cases. Both stay as long as the kernel's files do: ``render`` and
``check`` take them from the manifest on disk, and compare all else byte for byte.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.json_text import parse_json
from fa4gen.proof_words import EMULATED, PARTLY, RAN
from fa4gen.render.manifest import PROOF, RENDERED, intact_manifest, manifest_json, sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

VERIFIED = "verified"
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


def with_proof(manifest: str, proof: RecordedProof) -> str:
    """Return the text of a manifest with ``proof``; one that is there and is stronger stays."""
    data = parse_json(manifest.encode())
    if _strength(proof.proof) < _strength(data[PROOF]):
        return manifest
    how = asdict(proof)
    return _with_values(data, how.pop(PROOF), how)


def with_proof_on_disk(rendered: str, on_disk: bytes | None) -> str:
    """Return the rendered manifest with the proof that the one on disk has for the same files."""
    found = intact_manifest(on_disk)
    if found is None or VERIFIED not in found:
        return rendered
    data = parse_json(rendered.encode())
    if data["files"] != found.get("files"):
        return rendered
    return _with_values(data, found.get(PROOF), found[VERIFIED])


def _with_values(manifest: Mapping[str, Any], proof: object, verified: object) -> str:
    return manifest_json(sealed({**manifest, PROOF: proof, VERIFIED: verified}))


def _strength(proof: str) -> int:
    return max(i for i, word in enumerate(_WEAKEST_FIRST) if proof.startswith(word) or not i)
