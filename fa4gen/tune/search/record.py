"""The record of tuning for one problem: one line of JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from fa4gen.errors import Problem
from fa4gen.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1
DecidedBy = Literal["measurement", "model"]


@dataclass(frozen=True)
class Timed:
    """A candidate at one problem."""

    name: str
    source: str
    """"config", "shipped" or "tile"."""
    predicted_us: float
    config: Mapping[str, Any]
    """All keys in its config."""
    config_sha256: str = ""
    us: float | None = None
    """Median of the rounds after the choice, where it was timed in these, else of those before;
    None where it was not measured."""
    rounds_us: tuple[float, ...] = ()
    """Times of the rounds in which it was compared with the other candidates."""
    again_us: tuple[float, ...] = ()
    """Times of the rounds after the choice: of the winner and the config itself."""
    left_out: str = ""
    """Why it was not measured, where it should have been."""


@dataclass(frozen=True)
class TuneRecord:
    """The outcome for one problem."""

    base: str
    problem: str
    extents: Mapping[str, int]
    chip: str
    decided_by: DecidedBy
    winner: str
    """Name of the kernel to use; "" without a winner."""
    clear: bool = False
    """Whether the measured winner was clear before rounds or time ran out."""
    kernels: tuple[Timed, ...] = ()
    """In the order of predicted times, the model's choice first, then refined ones."""
    peers_us: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Peers that did not run, with the reason."""
    key: str = ""
    """Hash of the inputs of the outcome."""
    versions: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    """The reasons for the lack of a winner."""

    @property
    def sweep(self) -> str:
        """The name of the work that all lines of a file belong to."""
        return self.base

    @property
    def case(self) -> str:
        """The problem of the line."""
        return self.problem

    @property
    def chosen(self) -> Timed | None:
        """The winner."""
        return next((one for one in self.kernels if one.name == self.winner), None)

    def data(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return {"schema_version": SCHEMA_VERSION, "kind": "tune", **asdict(self)}

    def line(self) -> str:
        """Return the record as one line of JSON, line end included."""
        return json.dumps(self.data(), allow_nan=False) + "\n"


def read_record(line: str) -> TuneRecord:
    """Return the record that ``line`` holds. Raises ValueError for anything else."""
    data = parse_json(line)
    if not isinstance(data, dict) or data.pop("kind", None) != "tune":
        raise ValueError("not a record of tuning")
    if data.pop("schema_version", None) != SCHEMA_VERSION:
        raise ValueError("a record of another version of fa4gen")
    try:
        data["kernels"] = tuple(
            Timed(**one | {key: tuple(one[key]) for key in ("rounds_us", "again_us") if key in one})
            for one in data["kernels"]
        )
        data["problems"] = tuple(Problem(**problem) for problem in data["problems"])
        return TuneRecord(**data)
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a record of tuning: {error}") from error
