"""The definition of a bug class: a kernel that has one, its corrected twin, and the finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator import Limits, Names, Program, Report
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit
from tests.emulator.mutations.kernels import roles
from tests.emulator.mutations.mutant import Found

FOLDER: Final = Path(__file__).parent / "cuda"
PTX_HEADER: Final = FOLDER.parents[1] / "mutations" / "cuda" / "ptx.cuh"
LIMITS: Final = Limits(steps=300_000, idle_steps=20_000)
ARCHS: Final = {"tensor_memory": "sm_100a", "launch_control": "sm_100a"}
"""The architectures of the files with kernels that are not for sm_90a."""

Twin = Literal["broken", "fixed"]
Data = dict[str, NDArray[Any]]

_VARIANTS: Final[Mapping[Twin, str]] = {
    "fixed": "#define FIXED(...) __VA_ARGS__\n#define BROKEN(...)\n",
    "broken": "#define FIXED(...)\n#define BROKEN(...) __VA_ARGS__\n",
}


@dataclass(frozen=True, eq=False)
class BugClass:
    """One class.

    ``name`` is the kernel's, ``about`` the mistake and ``effect`` what comes of it, in words;
    ``bugs`` are keys of sources.BUGS. ``data`` makes the arrays of a launch from random numbers,
    with the output ``out``; ``arguments`` puts them in order, ``expected`` says what is right.
    ``pending`` names the arrays that the grid before writes, ``roles`` has names for threads (how
    many each), ``mutants`` names those of the larger kernels that are of the class (kernel/name).
    ``found`` lists what may be reported, as for mutants, and ``verdict`` the verdict.
    """

    name: str
    file: str
    group: str
    about: str
    effect: str
    bugs: str
    data: Callable[[np.random.Generator], Data]
    arguments: Callable[[Data], list[Any]]
    expected: Callable[[Data], NDArray[Any]]
    found: tuple[Found, ...]
    threads: int = 32
    grid: int = 1
    verdict: Literal["error", "isa", "review"] = "error"
    pending: tuple[str, ...] = ()
    roles: tuple[tuple[str, int], ...] = ()
    mutants: tuple[str, ...] = ()

    @property
    def arch(self) -> str:
        return ARCHS.get(self.file, "sm_90a")

    def launch(self, twin: Twin, seed: int, schedule: str) -> tuple[Report, Data]:
        """Run one of the two kernels; the arrays hold what it left."""
        data = self.data(np.random.default_rng(seed))
        report = program(self.file, twin).launch(
            self.name, grid=self.grid, block=self.threads, args=self.arguments(data),
            seed=seed, schedule=schedule, limits=LIMITS,
            names=Names(roles=roles(*self.roles)),
            outputs=[data["out"]], pending_writes=[data[name] for name in self.pending],
        )  # fmt: skip
        return report, data


def source(file: str) -> str:
    return (FOLDER / f"{file}.cu").read_text()


@cache
def program(file: str, twin: Twin) -> Program:
    """All kernels of a file, compiled as broken or as corrected."""
    headers = {
        "classes.cuh": (FOLDER / "classes.cuh").read_text(),
        "ptx.cuh": PTX_HEADER.read_text(),
        "variant.cuh": _VARIANTS[twin],
    }
    unit = Unit(file, source(file), headers, ARCHS.get(file, "sm_90a"), line_info=True)
    return Program(find_compiler("nvrtc").build_ptx(unit))
