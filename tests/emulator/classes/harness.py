"""Running both twins of a class, and judging what is reported."""

from __future__ import annotations

from typing import Final

import numpy as np

from fa4gen.emulator import SCHEDULES, Finding
from tests.emulator.classes import classes_flags, classes_sm90, classes_sm100
from tests.emulator.classes.bug_class import BugClass, source
from tests.emulator.mutations.harness import matches
from tests.emulator.mutations.mutant import Found

SEEDS: Final = 20
BUG_CLASSES: Final = (
    *classes_sm90.CLASSES,
    *classes_flags.CLASSES,
    *classes_sm100.CLASSES,
)


def complaints(bug: BugClass, seeds: range) -> list[str]:
    """Return the errors in the reports of both kernels under these seeds."""
    result = []
    text = source(bug.file)
    for seed in seeds:
        schedule = SCHEDULES[seed % len(SCHEDULES)]
        report, data = bug.launch("fixed", seed, schedule)
        if report.verdict.value != "clean":
            result.append(f"corrected: {report}")
        elif not np.array_equal(data["out"], bug.expected(data)):
            result.append(f"corrected, seed {seed}: wrong results {data['out']}")
        report, _ = bug.launch("broken", seed, schedule)
        if report.verdict.value != bug.verdict:
            result.append(f"{report.verdict.value} instead of {bug.verdict}: {report}")
        elif not any(
            one.severity.value == bug.verdict and _is(one, found, text)
            for one in report.findings
            for found in bug.found
        ):
            result.append(f"none of {bug.found} in {report}")
    return result


def _is(finding: Finding, found: Found, text: str) -> bool:
    """Whether a finding is the expected one; an output that was never written has no line."""
    if not found.at:
        return finding.kind == found.kind
    return matches(finding, found, text)
