"""The resources of each architecture, as numbers. Sources: CUDA programming guide, PTX ISA."""

from __future__ import annotations

from dataclasses import dataclass, replace

GROUP_L2_BYTES = 32 << 20
"""Keys and values of a group of heads: of a 50 MB L2, this part was measured to be fastest."""


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
    multiprocessors: int
    """Multiprocessors of the usual chip (H200, B200, B300), for explanations; a launch asks the
    GPU."""
    most_multiprocessors: int
    """Multiprocessors of its largest GPU."""
    first_cuda: str
    """The first version of CUDA that compiles for it."""
    tensor_memory_columns: int = 0
    """Columns of 128 lanes of 32 bits each; 0 without tensor memory."""


_HOPPER = Architecture(
    "sm_90a", "__CUDA_ARCH_FEAT_SM90_ALL", (9, 0), 232448, 65536, 255, 16, 132, 132, "12.0"
)
_BLACKWELL = Architecture(
    "sm_100a", "__CUDA_ARCH_FEAT_SM100_ALL", (10, 0), 232448, 65536, 255, 16, 148, 148, "12.8", 512
)
ARCHITECTURES = {
    "sm_90a": _HOPPER,
    "sm_100a": _BLACKWELL,
    "sm_103a": replace(
        _BLACKWELL,
        name="sm_103a",
        feature_macro="__CUDA_ARCH_FEAT_SM103_ALL",
        compute_capability=(10, 3),
        most_multiprocessors=160,
        first_cuda="12.9",
    ),
}
