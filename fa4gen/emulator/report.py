"""The result of a launch: its findings and their verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias

from fa4gen.emulator.coverage.counts import Coverage

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction, SourceLine

Text: TypeAlias = "str | Callable[[], str]"
"""A message, or a function that makes one, called for the first finding of a group only."""


class Severity(Enum):
    """The meaning of a finding for the kernel.

    ERROR       a result or a hang can go wrong on hardware; proved by this very run
    ISA         against the letter of the PTX ISA, but ordered by known behaviour of the hardware
    REVIEW      worth a look by a person
    INCOMPLETE  something was not run or not watched, so that a clean verdict would say too much
    """

    ERROR = "error"
    ISA = "isa"
    REVIEW = "review"
    INCOMPLETE = "incomplete"


class Verdict(Enum):
    """The worst finding decides; a launch that was not watched to its end is never clean."""

    CLEAN = "clean"
    INCOMPLETE = "incomplete"
    REVIEW = "review"
    ISA = "isa"
    ERROR = "error"


_WORST_FIRST: Final = (Severity.ERROR, Severity.ISA, Severity.REVIEW, Severity.INCOMPLETE)


@dataclass(frozen=True, slots=True)
class Finding:
    """A group of findings of one kind at one instruction, or between the same two.

    kind      a stable word such as ``race`` or ``deadlock``
    message   that of the first of the group
    where     its source line (``kernel.cu:120``) or PTX line; ``line`` is the PTX line
    who       the role or the threads of the first finding
    count     how often it was seen, ``ctas`` in how many CTAs
    earlier   the PTX line of the other instruction, or 0
    source    the source line with the places where it was inlined, None where it is not known
    """

    kind: str
    severity: Severity
    message: str
    where: str
    line: int
    who: str
    count: int = 1
    earlier: int = 0
    ctas: int = 1
    source: SourceLine | None = None

    def __str__(self) -> str:
        times = f" ({self.count} times" if self.count > 1 else ""
        if times:
            times += f", in {self.ctas} CTAs)" if self.ctas > 1 else ")"
        where = f"{self.where}{self.source.inlined if self.source else ''}"
        return f"{self.severity.value}: {self.kind} at {where}, {self.who}: {self.message}{times}"


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a launch.

    ``instructions`` counts executed thread-instructions; ``elapsed`` is in seconds;
    ``model_cycles`` is the length of the launch in the cost model, or None without a timeline.
    ``coverage`` has the parts of the kernel that the launch exercised.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    instructions: int
    elapsed: float
    seed: int
    schedule: str
    ctas: int = 0
    model_cycles: float | None = None
    coverage: Coverage = field(default_factory=Coverage)

    def strict(self) -> Report:
        """The report with errors in place of findings against the letter of the PTX ISA."""
        findings = tuple(
            replace(one, severity=Severity.ERROR) if one.severity is Severity.ISA else one
            for one in self.findings
        )
        return replace(self, verdict=verdict_of(findings), findings=worst_first(findings))

    def totals(self) -> dict[Severity, tuple[int, int]]:
        """For each severity: the number of findings, and how often they were seen in all."""
        return {
            severity: (len(counts), sum(counts))
            for severity in _WORST_FIRST
            if (counts := [one.count for one in self.findings if one.severity is severity])
        }

    def __str__(self) -> str:
        head = f"{self.verdict.value} (seed {self.seed}, schedule {self.schedule})"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])


def worst_first(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings by severity; those of one severity in the order in which they came."""
    return tuple(sorted(findings, key=lambda one: _WORST_FIRST.index(one.severity)))


def verdict_of(findings: tuple[Finding, ...]) -> Verdict:
    """The verdict that findings lead to."""
    severities = {finding.severity for finding in findings}
    for severity in _WORST_FIRST:
        if severity in severities:
            return Verdict(severity.value)
    return Verdict.CLEAN


@dataclass(slots=True)
class _Group:
    first: Finding
    count: int
    ctas: set[int]


@dataclass(slots=True)
class FindingLog:
    """Collects findings in groups; none is dropped.

    A group is of one kind and severity, at one place of the program or between the same two. So
    there are never more groups than the program has pairs of instructions, and copies that the
    compiler made of a statement share a group.
    """

    _groups: dict[tuple[str, Severity, str, str, str], _Group] = field(default_factory=dict)

    def add(
        self,
        kind: str,
        severity: Severity,
        message: Text,
        site: Instruction | None,
        who: Text,
        *,
        earlier: Instruction | None = None,
        cta: int = 0,
        apart: str = "",
    ) -> None:
        """Note a finding.

        site, earlier  the instruction, and the other one that it conflicts with, if there are
        who            the threads, in words
        cta            the number of the CTA
        apart          keeps findings of one kind and place apart, such as waiting threads
        """
        here, there = site.place if site else "", earlier.place if earlier else ""
        key = (kind, severity, here, there, apart)
        group = self._groups.get(key)
        if group is not None:
            group.count += 1
            group.ctas.add(cta)
            return
        text = message if isinstance(message, str) else message()
        person = who if isinstance(who, str) else who()
        first = Finding(
            kind,
            severity,
            text,
            site.where if site else "the end",
            site.line if site else 0,
            person,
            earlier=earlier.line if earlier else 0,
            source=site.source if site else None,
        )
        self._groups[key] = _Group(first, 1, {cta})

    def findings(self) -> tuple[Finding, ...]:
        """All groups, the worst first."""
        return worst_first(
            tuple(
                replace(one.first, count=one.count, ctas=len(one.ctas))
                for one in self._groups.values()
            )
        )

    def verdict(self) -> Verdict:
        """The worst of all findings decides."""
        return verdict_of(tuple(group.first for group in self._groups.values()))
