"""What a launch leaves behind: findings and the verdict drawn from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Severity(Enum):
    """How sure a finding is: an error is proved by this very run."""

    ERROR = "error"
    REVIEW = "review"
    INCOMPLETE = "incomplete"


class Verdict(Enum):
    """The worst finding decides; a launch cut short by a limit is never clean."""

    CLEAN = "clean"
    INCOMPLETE = "incomplete"
    REVIEW = "review"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``kind`` is a stable word such as ``race`` or ``deadlock``.

    ``where`` is the source line (``kernel.cu:120``) or the PTX line; ``line`` the PTX line;
    ``who`` the role or the threads; ``count`` how often it was seen.
    """

    kind: str
    severity: Severity
    message: str
    where: str
    line: int
    who: str
    count: int = 1

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return (
            f"{self.severity.value}: {self.kind} at {self.where}, {self.who}: {self.message}{times}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a launch.

    ``instructions`` counts executed thread-instructions; ``elapsed`` is in seconds;
    ``model_cycles`` is the length of the launch in the cost model, or None without a timeline.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    instructions: int
    elapsed: float
    seed: int
    schedule: str
    ctas: int = 0
    model_cycles: float | None = None

    def __str__(self) -> str:
        head = f"{self.verdict.value} (seed {self.seed}, schedule {self.schedule})"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])


@dataclass(slots=True)
class FindingLog:
    """Collects findings; the same kind at the same instruction is counted, not repeated."""

    limit: int = 100
    _found: dict[tuple[str, str, int, str], Finding] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        key = (finding.kind, finding.severity.value, finding.line, finding.who)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = Finding(
                known.kind,
                known.severity,
                known.message,
                known.where,
                known.line,
                known.who,
                known.count + 1,
            )
        elif len(self._found) < self.limit:
            self._found[key] = finding

    def findings(self) -> tuple[Finding, ...]:
        order = {Severity.ERROR: 0, Severity.REVIEW: 1, Severity.INCOMPLETE: 2}
        return tuple(sorted(self._found.values(), key=lambda finding: order[finding.severity]))

    def verdict(self) -> Verdict:
        severities = {finding.severity for finding in self._found.values()}
        for severity, verdict in (
            (Severity.ERROR, Verdict.ERROR),
            (Severity.REVIEW, Verdict.REVIEW),
            (Severity.INCOMPLETE, Verdict.INCOMPLETE),
        ):
            if severity in severities:
                return verdict
        return Verdict.CLEAN
