"""Verdicts as data for JSON, and in words."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any

from fa4gen.counts import counted
from fa4gen.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.verify.errors import ErrorSet
    from fa4gen.verify.exercise import Exercise
    from fa4gen.verify.verdict import CaseVerdict, Verdict

SCHEMA_VERSION = 1
INSIDE = "inside"
ERROR_LEGEND = (
    "Errors: the one closest to its bound in any case, and its share of that bound. "
    f"{INSIDE}: each element is a value that exact sums may round to."
)


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON data; errors that are infinite are the text "inf"."""
    return {
        "name": verdict.name,
        "config": verdict.config,
        "arch": verdict.arch,
        "proof": verdict.proof,
        "passed": verdict.passed,
        "num_cases": verdict.num_cases,
        "num_passed": verdict.num_passed,
        "seconds": round(verdict.seconds, 3),
        "compiled": dict(verdict.facts),
        "problems": [problem.message for problem in problems(verdict)],
        "worst": _worst(verdict),
        "exercise": None if verdict.exercise is None else verdict.exercise.data(),
        "cases": [_case_data(case) for case in verdict.cases],
    }


def _worst(verdict: Verdict) -> dict[str, float | str]:
    """Return the errors closest to their bounds; empty where nothing was measured."""
    return {name: _finite(verdict.worst(name)[0]) for name in verdict.error_names}


def problems(verdict: Verdict) -> Iterator[Problem]:
    """Return every problem of a kernel, each with the command that reproduces it."""
    yield from verdict.problems
    for case in verdict.cases:
        for failure in case.failures:
            yield Problem(
                f"{verdict.name}, {case.case}: {failure.message}",
                f"Seed {verdict.seed}. To reproduce it: {repeat_command(verdict, case)}",
                file=verdict.config,
                line=1,
                column=1,
            )
    left_out = verdict.num_cases - len(verdict.cases)
    if left_out:
        yield Problem(
            f"{verdict.name}: {left_out} of {counted(verdict.num_cases, 'case')} "
            "not run after that",
            file=verdict.config,
        )


def coverage_problems(
    name: str, config: str, exercise: Exercise, *, strict: bool
) -> Iterator[Problem]:
    """Return the failures of a kernel that follow from its coverage.

    Instructions that the plan says cannot run and that did; with ``strict``, those that did not,
    and branches that the plan names and the kernel does not have.
    """
    for text in (*exercise.judged.refuted, *(exercise.judged.idle if strict else ())):
        yield Problem(f"{name}: {text}", file=config, line=1, column=1)
    if strict and exercise.not_run:
        yield Problem(
            f"{name}: partly emulated: {_not_run(exercise)}",
            "--show-coverage lists them; without --strict this is a warning.",
            file=config,
            line=1,
            column=1,
        )


def gaps(verdict: Verdict, *, every: bool = False) -> Iterator[tuple[bool, str]]:
    """Return the parts of a passing kernel that the cases did not reach; True marks warnings.

    Nothing where cases were chosen by name. A ring that did not wrap is a warning: errors in its
    waits would not have shown. So is a kind of work that was always, or never, done, and code that
    did not run; with ``every`` all places of such code are listed, else the first. Branches are
    reported: many can never go both ways.
    """
    exercise = verdict.exercise
    right = verdict.num_passed == verdict.num_cases
    if exercise is not None and exercise.whole and right:
        for gap in exercise.ring_gaps():
            yield True, f"{verdict.name}: {gap}"
        for gap in exercise.work_gaps():
            yield True, f"{verdict.name}: {gap}"
        if exercise.not_run and not every and verdict.passed:  # else it is a problem already
            yield True, f"{verdict.name}: {_not_run(exercise)}"
        for gap in exercise.instruction_gaps() if every else ():
            yield True, f"{verdict.name}: {gap}"
        for gap in exercise.branch_gaps():
            yield False, f"{verdict.name}: {gap}"


def _not_run(exercise: Exercise) -> str:
    """Say how many instructions did not run, and name one."""
    number, place = len(exercise.not_run), exercise.place_of(exercise.not_run[0])
    return f"{counted(number, 'instruction')} not run in any case, the first at {place}"


def exercise_cells(verdict: Verdict) -> tuple[str, str]:
    """Write how many rings wrapped twice and branches went both ways; "-" where not recorded."""
    exercise = verdict.exercise
    if exercise is None:
        return "-", "-"
    branches = exercise.coverage
    return (
        f"{exercise.num_wrapped}/{len(exercise.rings)}",
        f"{branches.num_covered}/{len(branches.branches)}",
    )


def repeat_command(verdict: Verdict, case: CaseVerdict) -> str:
    """Return the command line that runs one case again on the same numbers."""
    command = verdict.again or ("fa4gen", "verify", verdict.config or verdict.name)
    words = [*command, "--seed", str(verdict.seed)]
    if case.case.name.startswith("large/"):
        words.append("--large")
    return shlex.join([*words, "--cases", case.case.name])


def verdict_word(verdict: Verdict) -> str:
    """Return the proof, or FAILED."""
    return verdict.proof if verdict.passed else "FAILED"


def error_cell(verdict: Verdict, name: str) -> str:
    """Write the error that is closest to its bound, as a share of the bound.

    An element inside its interval is right, be it in the middle or at an end: INSIDE.
    """
    if name not in verdict.error_names:
        return "-"
    error, bound = verdict.worst(name)
    if name in verdict.interval_names and error <= 1:
        return INSIDE
    if not error:
        return "0"
    share = f"{100 * error / bound:.0f} %" if bound and math.isfinite(error) else "above"
    return f"{error:.2g} ({share})"


def _case_data(case: CaseVerdict) -> dict[str, Any]:
    return {
        **case.case.data_items(),
        "passed": case.passed,
        "failures": [
            {"check": failure.check, "message": failure.message} for failure in case.failures
        ],
        "errors": _errors_data(case.errors),
        "own_precision": _errors_data(case.own),
        "bounds": _errors_data(case.bounds),
    }


def _errors_data(errors: ErrorSet | None) -> dict[str, float | str] | None:
    return None if errors is None else {name: _finite(error) for name, error in errors}


def _finite(value: float) -> float | str:
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)
