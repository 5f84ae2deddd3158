"""What each architecture offers, as numbers. Sources: CUDA programming guide, PTX ISA."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """Limits of one CTA on one architecture; bytes and counts."""

    name: str
    feature_macro: str
    """Defined by the compilers when they compile for exactly this architecture."""
    compute_capability: tuple[int, int]
    shared_bytes: int
    """The most dynamic shared memory that a CTA may ask for."""
    registers: int
    max_registers_per_thread: int
    named_barriers: int


ARCHITECTURES = {
    "sm_90a": Architecture("sm_90a", "__CUDA_ARCH_FEAT_SM90_ALL", (9, 0), 232448, 65536, 255, 16),
}
