"""Mutants of Hopper's products that verify's own cases report, and how a kernel is checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.kernels.source_mutation import Change, verify

if TYPE_CHECKING:
    from fa4gen.verify.verdict import Verdict
    from tests.kernels.source_mutation import CanChange, Kernel


@dataclass(frozen=True)
class ReportedMutant:
    """A changed kernel, the emulated case that has to fail, and words of the failure."""

    config: str
    case: str
    changes: tuple[CanChange, ...]
    says: str = "numbers: "
    in_header: bool = False


def one(
    config: str, case: str, pattern: str, new: str, says: str = "numbers: ", times: int = 1
) -> ReportedMutant:
    """Return a mutant with a single change."""
    return ReportedMutant(config, case, (Change(pattern, new, times),), says)


def messages(verdict: Verdict) -> str:
    """Return all failures of a verdict, a line each."""
    failures = [failure for case in verdict.cases for failure in case.failures]
    return "\n".join(f"{failure.check}: {failure.message}" for failure in failures)


def check_clean(kernel: Kernel, *cases: str, seed: int = 0) -> None:
    """Assert that verify passes a kernel on the cases of some names."""
    for case in cases:
        verdict, _ = verify(kernel, case, seed)
        assert verdict.num_cases
        assert verdict.passed, messages(verdict)
