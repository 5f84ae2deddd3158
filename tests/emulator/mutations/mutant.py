"""The definition of a mutant: a kernel with one mistake, and the emulator's finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

CLASSES: Final = {
    "PF": "missing proxy fence",
    "PW": "generic read, then a write of the async proxy",
    "TF": "fences and waits of tensor memory",
    "TD": "lifetime of tensor memory",
    "PH": "phases and parities",
    "AC": "arrivals and bytes",
    "WT": "missing or misplaced wait",
    "NS": "named barriers and warps",
    "IN": "initialisation of barriers",
    "RG": "registers of warpgroups",
    "OV": "overlapping memory",
    "RO": "roles that disagree",
    "CL": "clusters and pairs of CTAs",
    "GR": "other grids and tensor maps",
    "GF": "flags and counters in global memory",
}


@dataclass(frozen=True)
class Edit:
    """``old`` becomes ``new`` at each of the ``times`` places where it stands."""

    old: str
    new: str = ""
    times: int = 1

    def apply(self, text: str) -> str:
        assert text.count(self.old) == self.times, (
            f"{self.old!r} stands {text.count(self.old)} times, not {self.times}"
        )
        return text.replace(self.old, self.new)


@dataclass(frozen=True)
class Found:
    """A finding: its kind, a part of the source line it is at, and of whose it is."""

    kind: str
    at: str
    who: str


@dataclass(frozen=True)
class Mutant:
    """``bugs`` are keys of sources.BUGS, where mistakes of the kind were made.

    ``found`` lists what may be reported: one of them has to be among the findings of every
    schedule, and the verdict has to be ``verdict``. ``stage`` says what is edited, the source or
    the PTX.
    """

    name: str
    kernel: str
    group: str
    about: str
    bugs: str
    edits: tuple[Edit, ...]
    found: tuple[Found, ...]
    verdict: Literal["error", "isa", "review"] = "error"
    stage: Literal["source", "ptx"] = "source"
