"""The table of known bug classes in docs/measurements/bug-classes.md."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from tests.emulator.classes.bug_class import BugClass
from tests.emulator.classes.harness import BUG_CLASSES, SEEDS
from tests.emulator.classes.mutant_classes import MUTANT_CLASSES, MutantClass
from tests.emulator.mutations.harness import MUTANTS
from tests.emulator.mutations.kernels import KERNELS
from tests.emulator.mutations.mutant import CLASSES, Found, Mutant
from tests.emulator.mutations.sources import BUGS

HEADER: Final = ("class", "what happens", "public reports", "kernel", "finding", "seeds")
BY_NAME: Final = {f"{mutant.kernel}/{mutant.name}": mutant for mutant in MUTANTS}
_SITE: Final = "https://github.com/"
_TESTS: Final = "../tests/emulator/"


def rows() -> list[tuple[str, ...]]:
    """Every class, the groups one after the other; those without a public report come last."""
    every = (*BUG_CLASSES, *MUTANT_CLASSES)
    order = list(CLASSES)
    ordered = sorted(every, key=lambda one: (not keys(one), order.index(group(one))))
    return [_row(one) for one in ordered]


def summary() -> str:
    """How many there are."""
    every = (*BUG_CLASSES, *MUTANT_CLASSES)
    reported = sum(bool(keys(one)) for one in every)
    kernels = len(BUG_CLASSES) + sum(len(found.mutants) for found in every)
    return (
        f"{len(every)} classes, {reported} of them with public reports, in {kernels} kernels; "
        f"{len(BUG_CLASSES)} have a minimal kernel of their own."
    )


def group(one: BugClass | MutantClass) -> str:
    """A key of CLASSES."""
    return one.group if isinstance(one, BugClass) else BY_NAME[one.mutants[0]].group


def keys(one: BugClass | MutantClass) -> tuple[str, ...]:
    """Keys of BUGS: those of the class and of its mutants."""
    own = one.bugs.split() if isinstance(one, BugClass) else []
    theirs = [bug for name in one.mutants for bug in BY_NAME[name].bugs.split()]
    return tuple(dict.fromkeys([*own, *theirs]))


def _row(one: BugClass | MutantClass) -> tuple[str, ...]:
    mutants = [BY_NAME[name] for name in one.mutants]
    kernels, findings = [], []
    if isinstance(one, BugClass):
        link = f"[`{one.name}`]({_TESTS}classes/cuda/{one.file}.cu)"
        kernels.append(f"{link} for `{one.arch}`")
        findings.append(_finding(one.verdict, one.found))
    kernels += [_mutant_link(mutant) for mutant in mutants]
    findings += [_finding(mutant.verdict, mutant.found) for mutant in mutants]
    reports = dict.fromkeys(report for key in keys(one) for report in BUGS[key])
    return (
        one.about,
        one.effect,
        _lines(map(_report_link, reports)) or "none known",
        _lines(kernels),
        _lines(dict.fromkeys(findings)),
        f"0 to {SEEDS - 1}",
    )


def _lines(parts: Iterable[str]) -> str:
    return "<br>".join(parts)


def _mutant_link(mutant: Mutant) -> str:
    entry = KERNELS[mutant.kernel].entry
    link = f"[`{mutant.kernel}`]({_TESTS}mutations/cuda/{entry}.cu)"
    return f"{link}, mutant `{mutant.name}`"


def _finding(verdict: str, found: tuple[Found, ...]) -> str:
    return f"{verdict}: {' or '.join(dict.fromkeys(map(words, found)))}"


def words(found: Found) -> str:
    """A finding for people."""
    where = f" at `{found.at.rstrip('([')}`" if found.at else ""
    whose = f" by {found.who}" if found.who else ""
    return f"**{found.kind}**{where}{whose}"


def _report_link(report: str) -> str:
    """``owner/repository #12``, ``owner/repository 1a2b3c4`` or ``owner/repository a/file.md``."""
    repository, _, what = report.partition(" ")
    if what.startswith("#"):
        place = f"issues/{what[1:]}"
    elif re.fullmatch("[0-9a-f]{7,40}", what):
        place = f"commit/{what}"
    else:
        place = f"blob/main/{what}"
    return f"[{report}]({_SITE}{repository}/{place})"
