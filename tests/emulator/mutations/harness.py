"""Running kernels and mutants under seeds and schedules, and judging what is reported."""

from __future__ import annotations

from functools import cache
from typing import Final

from fa4gen.emulator import SCHEDULES, Finding, Program, Report
from tests.emulator.mutations import mutants_sm90, mutants_sm100
from tests.emulator.mutations.kernels import KERNELS, Kernel, compiled
from tests.emulator.mutations.mutant import Found, Mutant

MUTANTS: Final = (*mutants_sm90.MUTANTS, *mutants_sm100.MUTANTS)


def schedule(seed: int) -> str:
    """The policies take turns over the seeds."""
    return SCHEDULES[seed % len(SCHEDULES)]


@cache
def original(kernel: Kernel) -> Program:
    """A kernel as it should be."""
    return Program(compiled(kernel.entry, kernel.source, kernel.arch))


def sources(mutant: Mutant) -> tuple[str, str]:
    """Source and PTX of a mutant."""
    kernel = KERNELS[mutant.kernel]
    source = kernel.source
    if mutant.stage == "source":
        for edit in mutant.edits:
            source = edit.apply(source)
    ptx = compiled(kernel.entry, source, kernel.arch)
    if mutant.stage == "ptx":
        for edit in mutant.edits:
            ptx = edit.apply(ptx)
    return source, ptx


def matches(finding: Finding, found: Found, source: str) -> bool:
    """Whether a finding is of the kind, at the line and of the threads that were expected."""
    name, _, number = finding.where.rpartition(":")
    if finding.kind != found.kind or not name.endswith(".cu"):
        return False
    return found.at in source.splitlines()[int(number) - 1] and found.who in finding.who


def complaint(mutant: Mutant, report: Report, source: str) -> str | None:
    """Return the error in the report of a mutant, or None."""
    if report.verdict.value != mutant.verdict:
        return f"verdict {report.verdict.value} instead of {mutant.verdict}: {report}"
    for found in mutant.found:
        if any(
            finding.severity.value == mutant.verdict and matches(finding, found, source)
            for finding in report.findings
        ):
            return None
    return f"none of {mutant.found} in {report}"


def run(mutant: Mutant, seeds: int) -> list[str]:
    """Complaints of a mutant under the first seeds."""
    kernel = KERNELS[mutant.kernel]
    source, ptx = sources(mutant)
    program = Program(ptx)
    complaints = []
    for seed in range(seeds):
        report = kernel.launch(program, kernel.data(seed), seed=seed, schedule=schedule(seed))
        wrong = complaint(mutant, report, source)
        if wrong is not None:
            complaints.append(f"seed {seed}: {wrong}")
    return complaints
