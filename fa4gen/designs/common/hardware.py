"""The resources of each architecture, as numbers, and the GPUs that run its machine code.

Sources: CUDA programming guide, PTX ISA. Of targets the guide says ("Compute Capabilities", section
"Feature Set Compiler Targets"): code for a target with an ``a`` runs on that compute capability
alone; code for one with an ``f`` on the members of its family, which the guide lists, and on no
member that is older than the target. A major version may have several families. 10.7 is by a
secondary source of that list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP_L2_BYTES = 32 << 20
"""Keys and values of a group of heads: of a 50 MB L2, this part was measured to be fastest."""

Capability = tuple[int, int]
"""A compute capability: major and minor version."""


@dataclass(frozen=True)
class Architecture:
    """Limits of one CTA on one architecture; bytes and counts."""

    name: str
    feature_macro: str
    """Defined by the compilers when they compile for exactly this architecture; for a family, the
    macro with the number of the family's target."""
    runs_on: tuple[Capability, ...]
    """The GPUs that run machine code for it, from the oldest on."""
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

    @property
    def is_family(self) -> bool:
        """Whether its machine code is for several compute capabilities."""
        return self.name.endswith("f")

    @property
    def another_target(self) -> str:
        """A condition of the preprocessor: this pass is for GPUs that cannot run the kernel.

        Compilers for ``sm_103a`` take the code of the family ``sm_100f`` as well.
        """
        if not self.is_family:
            return f"!defined({self.feature_macro})"
        return f"{self.feature_macro} / 100 != {self.runs_on[0][0]}"


_HOPPER = Architecture(
    "sm_90a", "__CUDA_ARCH_FEAT_SM90_ALL", ((9, 0),), 232448, 65536, 255, 16, 132, 132, "12.0"
)
_BLACKWELL = Architecture(
    "sm_100a",
    "__CUDA_ARCH_FEAT_SM100_ALL",
    ((10, 0),),
    232448,
    65536,
    255,
    16,
    148,
    148,
    "12.8",
    512,
)
_ULTRA = replace(
    _BLACKWELL,
    name="sm_103a",
    feature_macro="__CUDA_ARCH_FEAT_SM103_ALL",
    runs_on=((10, 3),),
    most_multiprocessors=160,
    first_cuda="12.9",
)
ARCHITECTURES = {
    "sm_90a": _HOPPER,
    "sm_100a": _BLACKWELL,
    "sm_103a": _ULTRA,
    "sm_100f": replace(
        _ULTRA,
        name="sm_100f",
        feature_macro="__CUDA_ARCH_FAMILY_SPECIFIC__",
        runs_on=((10, 0), (10, 3), (10, 7)),
    ),
}


def runs_on(arch: str, capability: Capability) -> bool:
    """Whether machine code for ``arch`` (such as sm_90a) runs on GPUs of ``capability``."""
    return capability in ARCHITECTURES[arch].runs_on


def targets_for(capability: Capability) -> tuple[str, ...]:
    """Return the architectures with machine code that runs on ``capability``, families last."""
    archs = [arch for arch in ARCHITECTURES if runs_on(arch, capability)]
    return tuple(sorted(archs, key=lambda arch: ARCHITECTURES[arch].is_family))


def all_capabilities() -> tuple[Capability, ...]:
    """Return the compute capabilities that run any of the architectures, in order."""
    return tuple(sorted({one for arch in ARCHITECTURES.values() for one in arch.runs_on}))


def capability_words(capabilities: Iterable[Capability]) -> str:
    """Return compute capabilities in words: ``10.0, 10.3 or 10.7``."""
    *others, last = (f"{major}.{minor}" for major, minor in capabilities)
    return f"{', '.join(others)} or {last}" if others else last


def target_remedy(capability: Capability) -> str:
    """Return the words that tell how to come by a kernel for a GPU of ``capability``."""
    archs = targets_for(capability)
    if archs:
        return f"render it with arch: {' or '.join(archs)}"
    return f"kernels run on compute capability {capability_words(all_capabilities())}"
