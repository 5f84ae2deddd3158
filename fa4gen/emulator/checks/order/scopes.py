"""Accesses between the CTAs of a cluster that only an arrival's or a wait's scope leaves unordered.

The PTX ISA orders accesses of another CTA only by a release and an acquire of ``.cluster`` scope.
ptxas 13 makes of ``.acquire.cluster`` the same wait, followed by CCTL.IVALL, which invalidates
cached global memory; of ``.release.cluster`` the same arrival after MEMBAR.ALL.GPU, which waits for
stores on their way to the peer. So a missing ``.acquire.cluster`` costs shared and tensor memory
nothing, and a missing ``.release.cluster`` only stores to shared memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fa4gen.emulator.checks.order.clocks import VC
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.checks.order.cluster_threads import ClusterThreads
    from fa4gen.emulator.state.machine import Cta

_RELEASE: Final = (
    "only by a release of .cta scope at another CTA's mbarrier, which does not cover it: "
    "it needs .release.cluster"
)
_ACQUIRE: Final = (
    "only by a wait of .cta scope for the arrival of another CTA, which does not cover it: "
    "it needs .acquire.cluster"
)


def narrow_scope(
    threads: ClusterThreads, cta: Cta, slot: int, epoch: int, stored: bool
) -> tuple[str, Severity]:
    """Words and severity for an earlier access that only the plane LOOSE knows of.

    cta     the CTA of the later threads or operations
    stored  whether the earlier access stored to shared memory
    """
    if threads.has_missed(cta, VC, slot, epoch):
        return _ACQUIRE, Severity.ISA
    return _RELEASE, Severity.ERROR if stored else Severity.ISA
