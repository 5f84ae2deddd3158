"""Verdicts: the results of a case, and the facts about a kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.emulator.coverage.counts import Coverage
    from fa4gen.errors import Problem
    from fa4gen.verify.buffers import Image
    from fa4gen.verify.errors import ErrorSet
    from fa4gen.verify.exercise import Exercise

Check = Literal["unwritten", "numbers", "guard", "inputs", "repeat", "stopped", "emulator"]
"""unwritten: an output element still holds its poison. numbers: an error above its bound. guard:
bytes beside an output changed. inputs: an input changed. repeat: a second run gave other bits.
stopped: the kernel was refused, crashed or did not end. emulator: it found a race, a deadlock or
another error that numbers need not show."""


@dataclass(frozen=True)
class Failure:
    """One problem that a case found, in a sentence."""

    check: Check
    message: str


class NamedCase(Protocol):
    """A problem of any family; ``str()`` describes it completely."""

    COLUMNS: ClassVar[tuple[str, ...]]
    """Columns of a table of cases."""

    @property
    def name(self) -> str:
        """The name by which it is chosen."""

    def row(self) -> tuple[object, ...]:
        """Return the values of COLUMNS."""

    def data_items(self) -> dict[str, Any]:
        """Return the case as JSON data."""


@dataclass(frozen=True)
class CaseVerdict:
    """The result of one case. The errors are None where the kernel gave no output to measure."""

    case: NamedCase
    failures: tuple[Failure, ...]
    errors: ErrorSet | None = None
    own: ErrorSet | None = None
    """Errors of the same computation in NumPy, with a kernel's roundings."""
    bounds: ErrorSet | None = None
    coverage: Coverage | None = None
    """The coverage of the kernel, if the emulator ran it."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.failures


class Reference(Protocol):
    """The exact result of a case, and how far a kernel's may be from it."""

    @property
    def own(self) -> ErrorSet:
        """Errors of the same computation in NumPy, with a kernel's roundings."""

    @property
    def bounds(self) -> ErrorSet:
        """The bounds of a kernel's errors."""

    def compare(
        self, memory: Any, after: Mapping[str, Image], xp: Any
    ) -> tuple[ErrorSet, tuple[Failure, ...]]:
        """Return the errors of the results in the buffers, and which are too large."""


@dataclass(frozen=True)
class Verdict:
    """The facts about one kernel."""

    config: str
    """The config file."""
    name: str
    arch: str
    proof: str
    """"rendered", "compiled", "partly emulated (n instructions not run)", "emulated" or
    "ran on <GPU>"; how far it came, right or wrong."""
    seed: int
    cases: tuple[CaseVerdict, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Why it did not render or compile, or was not run."""
    num_cases: int = 0
    """Cases that were to be run."""
    stopped: bool = False
    """A case crashed or did not end: the rest was not run."""
    exit_status: int = 0
    """0, or that of the error that stopped it."""
    seconds: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The compiler's figures: registers, spills, shared memory."""
    exercise: Exercise | None = None
    """The coverage by the cases, if the emulator ran them."""
    again: tuple[str, ...] = ()
    """The command that verifies it again; empty for ``fa4gen verify`` of its config."""

    @property
    def passed(self) -> bool:
        """Whether every case passed, none was left out, and there was no other problem."""
        done = len(self.cases) == self.num_cases
        return done and not self.problems and all(case.passed for case in self.cases)

    @property
    def num_passed(self) -> int:
        """Cases that passed."""
        return sum(case.passed for case in self.cases)

    def worst(self, name: str) -> tuple[float, float]:
        """Return the error called ``name`` that is closest to its bound, and that bound.

        KeyError where no case has such an error.
        """
        found = [
            (dict(case.errors)[name], dict(case.bounds)[name])
            for case in self.cases
            if case.errors is not None and case.bounds is not None
        ]
        return max(found, key=lambda pair: _share(*pair), default=(0.0, 0.0))

    @property
    def error_names(self) -> tuple[str, ...]:
        """The names of the errors that were measured."""
        return next((case.errors.names() for case in self.cases if case.errors is not None), ())

    @property
    def interval_names(self) -> frozenset[str]:
        """The names of the errors that are shares of intervals."""
        measured = (case.errors for case in self.cases if case.errors is not None)
        return next((errors.INTERVALS for errors in measured), frozenset())


def _share(error: float, bound: float) -> float:
    if bound:
        return error / bound
    return math.inf if error else 0.0
