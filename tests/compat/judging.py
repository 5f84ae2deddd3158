"""Every kernel of the compat tier is checked alike: numbers, findings under all schedules."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator import SCHEDULES, Report, Severity
from tests.compat.recordings import Recording
from tests.compat.references import distance

CuteRecorder: TypeAlias = Callable[..., Recording]
"""The fixture ``cute``: keywords of a case of ``cute/record.py``, the recorded launches."""


def summary(reports: Collection[Report]) -> dict[str, int]:
    """How many findings there were, by severity and kind."""
    counts: dict[str, int] = {}
    for report in reports:
        for finding in report.findings:
            key = f"{finding.severity.value}: {finding.kind}"
            counts[key] = counts.get(key, 0) + finding.count
    return counts


def judge(
    recording: Recording, right: Mapping[str, NDArray[np.float64]], **options: Any
) -> set[str]:
    """Run a recording under every schedule and compare, as judge_runs does with its options."""
    return judge_runs(lambda schedule: recording.run(seed=0, schedule=schedule), right, **options)


def judge_runs(
    run: Callable[[str], tuple[Mapping[str, NDArray[Any]], Collection[Report]]],
    right: Mapping[str, NDArray[np.float64]],
    *,
    bounds: Mapping[str, float],
    known: Collection[str] = (),
    defects: Collection[str] = (),
    right_under: Collection[str] = SCHEDULES,
) -> set[str]:
    """Compare what ``run`` gives under every schedule: arrays by name, and reports.

    right    the outputs by name, in float64
    bounds   how far each may be off: relative Frobenius error
    known    kinds of findings below an error that docs/measurements/emulator-findings.md lists
    defects  kinds of errors that it lists for this kernel
    right_under  the schedules under which the outputs have to be right in spite of them

    Returns the kinds of errors that were found. Raises AssertionError that names the schedule and
    everything that is not expected.
    """
    wrong: set[str] = set()
    for schedule in SCHEDULES:
        start = time.perf_counter()
        arrays, reports = run(schedule)
        seconds = time.perf_counter() - start
        errors = {name: distance(arrays[name], value) for name, value in right.items()}
        print(f"{schedule:9}{seconds:6.1f} s  {_figures(errors)}  {summary(reports)}")
        far = {name: error for name, error in errors.items() if not error <= bounds[name]}
        assert not far or schedule not in right_under, f"{schedule}: wrong by {_figures(far)}"
        wrong.update(kinds_of_errors(reports))
        unknown = [
            str(finding)
            for report in reports
            for finding in report.findings
            if finding.kind not in (defects if finding.severity is Severity.ERROR else known)
        ]
        assert not unknown, f"{schedule}:\n" + "\n".join(unknown)
    return wrong


def kinds_of_errors(reports: Collection[Report]) -> set[str]:
    return {
        finding.kind
        for report in reports
        for finding in report.findings
        if finding.severity is Severity.ERROR
    }


def _figures(errors: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {error:.2e}" for name, error in errors.items())
