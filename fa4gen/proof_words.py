"""The words of verdicts for how far a kernel that was run is proved."""

from __future__ import annotations

from typing import Final

from fa4gen.counts import counted

EMULATED: Final = "emulated"
PARTLY: Final = "partly emulated"
"""Cases passed, and some instructions ran in none of them."""
RAN: Final = "ran on "
"""The beginning of a proof that ends with the name of a GPU."""


def emulated_proof(not_run: int) -> str:
    """Return the proof of a kernel with ``not_run`` instructions that could run and did not."""
    if not not_run:
        return EMULATED
    return f"{PARTLY} ({counted(not_run, 'instruction')} not run)"


def proof_word(proof: str) -> str:
    """Return a proof without its figures, which differ from kernel to kernel."""
    return PARTLY if proof.startswith(PARTLY) else proof


def is_emulated(proof: str) -> bool:
    """Return whether the emulator ran the kernel, with all of its instructions or a part."""
    return proof_word(proof) in (EMULATED, PARTLY)
