"""The record of a sweep's case: one line of JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from fa4gen.errors import Problem
from fa4gen.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SCHEMA_VERSION = 1
Outcome = Literal["passed", "failed", "skipped"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Stage = Literal["schema", "plan", "render", "compile", "verify", "worker"]
"""The last stage of a case; "worker": its process crashed, hung, or met a bug of fa4gen."""


@dataclass(frozen=True)
class CaseRecord:
    """The result of one case."""

    sweep: str
    case: str
    outcome: Outcome
    """failed: a kernel did not render, compile or verify. skipped: schema or plan refused it."""
    stage: Stage
    proof: str
    """The proof level of the kernel: "not rendered", "rendered", "compiled", "partly emulated (n
    instructions not run)", "emulated" or "ran on <GPU>"."""
    key: str = ""
    """Hash of everything that determines the outcome; "" where that is not known."""
    problems: tuple[Problem, ...] = ()
    varied: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Time by stage."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the plan (dynamic shared memory and stages) and of the compiler (registers, spills,
    static shared memory)."""
    verification: Mapping[str, Any] = field(default_factory=dict)
    """Seed, number of cases run and passed, largest errors."""
    generator: str = ""

    @property
    def total_seconds(self) -> float:
        """All stages together."""
        return sum(self.seconds.values())

    @property
    def reason(self) -> str:
        """The problems' messages on one line each, remedies left out."""
        return "\n".join(problem.message for problem in self.problems)

    def data(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        data: dict[str, Any] = {"schema_version": SCHEMA_VERSION, **dataclasses.asdict(self)}
        data["problems"] = [
            {key: value for key, value in problem.items() if value} for problem in data["problems"]
        ]
        return {key: _finite(value) for key, value in data.items()}

    def line(self) -> str:
        """Return the record as one line of JSON, line end included."""
        return json.dumps(self.data(), allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Return ``value`` with the numbers that JSON lacks as text: a refused case may hold them."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def read_line(line: str) -> CaseRecord:
    """Return the record that ``line`` holds. Raises ValueError for anything else."""
    data = parse_json(line)
    if not isinstance(data, dict) or data.pop("schema_version", None) != SCHEMA_VERSION:
        raise ValueError("not a record of a sweep")
    try:
        data["problems"] = tuple(Problem(**problem) for problem in data["problems"])
        record = CaseRecord(**data)
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a record of a sweep: {error}") from error
    if record.outcome not in OUTCOMES:
        raise ValueError(f"no outcome: {record.outcome!r}")
    return record


def count_outcomes(records: Iterable[CaseRecord]) -> dict[Outcome, int]:
    """Return how many cases passed, failed and were skipped."""
    counts: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
    for record in records:
        counts[record.outcome] += 1
    return counts
