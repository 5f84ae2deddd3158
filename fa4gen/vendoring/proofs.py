"""Proofs of ``fa4gen vendor verify`` in the lock: each counts for the files that it ran with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

from fa4gen.errors import NotCurrentError, Problem
from fa4gen.proof_words import EMULATED, PARTLY, RAN, is_emulated
from fa4gen.render.manifest import sha256
from fa4gen.vendoring.lock import (
    LOCK_NAME,
    Lock,
    Proof,
    ProofLevel,
    lock_text,
    proof_sha256,
    read_lock,
)
from fa4gen.vendoring.on_disk import read_file
from fa4gen.vendoring.replace_files import Change, replace_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

EMULATOR = "emulator"


@dataclass(frozen=True)
class Outcome:
    """The result of verifying one kernel."""

    symbol: str
    proof: str
    """The proof in the words of verdicts: "compiled", "partly emulated (n instructions not run)",
    "emulated" or "ran on <GPU>"."""
    passed: bool
    num_cases: int


def hashes_on_disk(folder: Path, lock: Lock) -> dict[str, str]:
    """Return the hashes of the lock's files as they are, by path; missing ones are left out."""
    found = {path: read_file(folder, path) for path in lock.files}
    return {path: sha256(data) for path, data in found.items() if data is not None}


def record_proofs(
    folder: Path, hashes: Mapping[str, str], outcomes: Sequence[Outcome], seed: int
) -> list[str]:
    """Write proofs into the lock of ``folder``; return the symbols that it has new.

    ``hashes`` are those of the files that were verified. A kernel that failed loses the proof of
    that level that it had for the same files. Raises NotCurrentError when files changed since.
    """
    lock = read_lock(folder)
    if hashes_on_disk(folder, lock) != dict(hashes):
        raise NotCurrentError(
            Problem(
                "files changed while they were verified: nothing is recorded",
                "Verify again.",
                str(folder),
            )
        )
    by_symbol = {outcome.symbol: outcome for outcome in outcomes}
    kernels = []
    for kernel in lock.kernels:
        outcome = by_symbol.get(kernel.symbol)
        if outcome is not None:
            digest = proof_sha256(kernel.symbol, dict(hashes))
            proofs = _joined(kernel.proofs, outcome, digest, seed)
            kernel = kernel.changed(proofs=proofs)
        kernels.append(kernel)
    new = lock.changed(kernels=tuple(kernels))
    before, after = lock_text(lock).encode(), lock_text(new).encode()
    if before != after:
        replace_files(folder, [Change(LOCK_NAME, sha256(before), after)])
    return [o.symbol for o in outcomes if o.passed and _level(o.proof) is not None]


def _joined(
    proofs: Sequence[Proof], outcome: Outcome, files_sha256: str, seed: int
) -> tuple[Proof, ...]:
    """Return ``proofs`` with the new one in the place of that of its level."""
    level = _level(outcome.proof)
    if level is None:
        return tuple(proofs)
    kept = [
        proof
        for proof in proofs
        if proof.level != level or (not outcome.passed and proof.files_sha256 != files_sha256)
    ]
    if outcome.passed:
        kept.append(
            Proof(
                level=level,
                device=outcome.proof.removeprefix(RAN) if level == "ran" else EMULATOR,
                seed=seed,
                cases=outcome.num_cases,
                date=datetime.now(UTC).date().isoformat(),
                files_sha256=files_sha256,
            )
        )
    order = get_args(ProofLevel)
    return tuple(sorted(kept, key=lambda proof: order.index(proof.level)))


def _level(proof: str) -> ProofLevel | None:
    """Return the lock's word for a verdict's proof, None for one that says nothing of a run."""
    if proof.startswith(RAN):
        return "ran"
    if not is_emulated(proof):
        return None
    return EMULATED if proof == EMULATED else PARTLY
