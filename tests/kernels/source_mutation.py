"""Mistakes put into the rendered source of a kernel, and what verify's emulator says of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.render.render import render
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Resources, Unit
from fa4gen.verify.emulator import EmulatedKernel, EmulatorBackend
from fa4gen.verify.run import VerifyOptions, verify_kernel

if TYPE_CHECKING:
    from fa4gen.emulator import Finding, Program, Report
    from fa4gen.verify.verdict import Verdict

KEYS = {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 128}


@dataclass(frozen=True)
class Change:
    """What matches ``pattern``, at ``times`` places, becomes ``new``."""

    pattern: str
    new: str = ""
    times: int = 1

    def apply(self, text: str) -> str:
        """Make the change; AssertionError where the text does not hold the pattern so often."""
        changed, count = re.subn(self.pattern, self.new, text)
        assert count == self.times, f"{self.pattern} is there {count} times, not {self.times}"
        return changed


@dataclass(frozen=True)
class Found:
    """A finding: its kind, the function of the kernel that it is in, the role, and words of it."""

    kind: str
    at: str
    who: str
    says: str = ""


@dataclass(frozen=True)
class Mutant:
    """``config`` names a kernel, ``case`` the problem that shows the mistake.

    One of ``found`` has to be among the findings whatever the schedule, and the verdict has to be
    ``verdict``. ``in_header`` changes the header of barrier constants instead.
    """

    config: str
    about: str
    changes: tuple[Change, ...]
    found: tuple[Found, ...]
    case: str = "ring/*"
    verdict: Literal["error", "isa", "review"] = "error"
    in_header: bool = False


@dataclass(frozen=True)
class Kernel:
    """A plan, and the text of its kernel."""

    plan: Any
    source: str
    header: str


def kernel_of(keys: dict[str, Any]) -> Kernel:
    """Return the kernel of a config that says no more than ``keys``."""
    loaded = load_mapping({**KEYS, **keys}, "mutant")
    plan = build_plan(loaded.config)
    rendered = render(plan, loaded)
    [header] = rendered.headers.values()
    return Kernel(plan, rendered.source, header)


class HasChanges(Protocol):
    """What ``mutated`` needs of a mutant."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """To be made one after the other."""

    @property
    def in_header(self) -> bool:
        """Whether they are for the header of barrier constants."""


def mutated(kernel: Kernel, mutant: HasChanges) -> Kernel:
    """Return the kernel with a mistake in it; AssertionError where it does not fit any more."""
    source, header = kernel.source, kernel.header
    for change in mutant.changes:
        if mutant.in_header:
            header = change.apply(header)
        else:
            source = change.apply(source)
    return Kernel(kernel.plan, source, header)


@cache
def ptx_of(kernel: Kernel) -> str:
    """Compile, with the lines that findings are told by."""
    name = kernel.plan.name
    unit = Unit(
        name, kernel.source, {f"{name}_barriers.h": kernel.header}, kernel.plan.arch, line_info=True
    )
    return find_compiler("nvrtc").build_ptx(unit)


class Recorder:
    """A program whose launches take a schedule of the test's choice, and whose reports are kept."""

    def __init__(self, program: Program, seed: int) -> None:
        self._program = program
        self._seed = seed
        self.reports: list[Report] = []

    def launch(self, entry: str, **options: Any) -> Report:
        """Launch with the next seed; the policies take turns over the seeds."""
        from fa4gen.emulator import SCHEDULES

        options["seed"] = self._seed + 1000 * len(self.reports)
        options["schedule"] = SCHEDULES[self._seed % len(SCHEDULES)]
        self.reports.append(self._program.launch(entry, **options))
        return self.reports[-1]


class RecordingBackend(EmulatorBackend):
    """Verify's emulator with a seed of the test's choice."""

    def __init__(self, arch: str, seed: int) -> None:
        super().__init__(arch)
        self._seed = seed
        self.recorder: Recorder | None = None

    def load(self, plan: Any, compiled: Any) -> EmulatedKernel:
        """Return the kernel with its launches recorded."""
        self.recorder = Recorder(_program(compiled.ptx), self._seed)
        recorder: Any = self.recorder
        return EmulatedKernel(plan, recorder)


@cache
def _program(ptx: str) -> Program:
    from fa4gen.emulator import Program

    return Program(ptx)


def verify(kernel: Kernel, case: str, seed: int) -> tuple[Verdict, list[Report]]:
    """Verify a kernel on a case under the schedule of ``seed``."""
    compiled: Any = SimpleNamespace(
        cubin=b"", ptx=ptx_of(kernel), resources=Resources(128, 0, 0, 0, 0, 0)
    )
    backend = RecordingBackend(kernel.plan.arch, seed)
    verdict = verify_kernel(kernel.plan, compiled, backend, VerifyOptions(seed, (case,)))
    assert backend.recorder is not None
    return verdict, backend.recorder.reports


def complaint(mutant: Mutant, kernel: Kernel, seed: int) -> str:
    """What is wrong with the verdict on a mutant under ``seed``; "" where it is as expected."""
    verdict, reports = verify(kernel, mutant.case, seed)
    assert verdict.num_cases == 1
    if verdict.passed:
        return "passed"
    failures = [failure for case in verdict.cases for failure in case.failures]
    if not reports or {failure.check for failure in failures} != {"emulator"}:
        return f"refused for something else: {failures}"
    report = reports[-1]
    if report.verdict.value != mutant.verdict:
        return f"{report.verdict.value} instead of {mutant.verdict}: {report}"
    lines = kernel.source.splitlines()
    if not any(_matches(finding, found, lines) for finding in report.findings
               for found in mutant.found):  # fmt: skip
        return f"none of {mutant.found} in {report}"
    return ""


def _matches(finding: Finding, found: Found, lines: list[str]) -> bool:
    name, _, number = finding.where.rpartition(":")
    if finding.kind != found.kind or not name.endswith(".cu"):
        return False
    is_there = function_of(lines, int(number)) == found.at
    return is_there and found.who in finding.who and found.says in finding.message


def function_of(lines: list[str], number: int) -> str:
    """Return the name of the function that a line is in; "kernel" for the entry point."""
    for line in reversed(lines[:number]):
        if line.startswith('extern "C"'):
            return "kernel"
        found = re.search(r"__device__ .*?(\w+)\(", line)
        if found:
            return found[1]
    return ""
