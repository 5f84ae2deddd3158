"""Mutants of the rendered source of a kernel, and the findings of verify's emulator."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import PurePath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, Protocol

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config, load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Resources, Unit
from fa4gen.verify.emulator import EmulatedKernel, EmulatorBackend
from fa4gen.verify.run import VerifyOptions, verify_kernel

if TYPE_CHECKING:
    from fa4gen.emulator import Finding, Program, Report
    from fa4gen.render.render import RenderedKernel
    from fa4gen.verify.verdict import Verdict

TEMPLATES = open_templates()
KEYS = {"kernel": "attention", "arch": "sm_100a", "dtype": "bf16", "depth": 128}


@dataclass(frozen=True)
class Change:
    """Replaces what matches ``pattern``, at ``times`` places, by ``new``."""

    pattern: str
    new: str = ""
    times: int = 1

    def apply(self, text: str) -> str:
        """Make the change; AssertionError where the pattern does not match so often."""
        changed, count = re.subn(self.pattern, self.new, text)
        assert count == self.times, f"{self.pattern} is there {count} times, not {self.times}"
        return changed


def line(call: str) -> str:
    """Return a pattern of a line that is this call and a comment at most.

    The comment may go on in the lines below.
    """
    return rf"\n *{call};[^\n]*(?:\n {{13,}}//[^\n]*)*"


def swap(first: str, second: str, times: int = 1) -> Change:
    """Exchange what stands one after the other."""
    return Change(f"({first})({second})", r"\2\1", times)


ANYWHERE = "*"
"""In place of a function."""


@dataclass(frozen=True)
class Found:
    """A finding: its kind, the kernel's function, the role, and words of its message."""

    kind: str
    at: str
    who: str
    says: str = ""


@dataclass(frozen=True)
class Mutant:
    """``config`` names a kernel, ``case`` the problem that shows the error.

    One of ``found`` has to be among the findings whatever the schedule, and the verdict has to be
    ``verdict``. ``in_header`` changes the header of barrier constants instead.
    """

    config: str
    about: str
    changes: tuple[CanChange, ...]
    found: tuple[Found, ...]
    case: str = "ring/*"
    verdict: Literal["error", "isa", "review"] = "error"
    in_header: bool = False


_NEXT_FILE = "\f\n"
"""Between the files of a kernel's code; no line of them."""


@dataclass(frozen=True)
class Kernel:
    """A plan, and the text of its kernel: N.cu, N_barriers.h and N_device.cuh."""

    plan: Any
    source: str
    header: str
    device: str

    @classmethod
    def of(cls, plan: Any, rendered: RenderedKernel) -> Kernel:
        """Return the kernel of ``plan`` as it was rendered."""
        files = rendered.files
        header, device = (files[plan.name + end] for end in ("_barriers.h", "_device.cuh"))
        return cls(plan, rendered.source, header, device)

    @property
    def code(self) -> str:
        """N.cu and the device header as one text, to be changed wherever a pattern matches."""
        return self.source + _NEXT_FILE + self.device

    def with_code(self, code: str) -> Kernel:
        """Return the kernel with the two files of ``code``."""
        source, device = code.split(_NEXT_FILE)
        return replace(self, source=source, device=device)

    def unit(self) -> Unit:
        """Return the unit to compile, with line information for findings."""
        name = self.plan.name
        headers = {f"{name}_barriers.h": self.header, f"{name}_device.cuh": self.device}
        return Unit(name, self.source, headers, self.plan.arch, line_info=True)

    def function_at(self, place: str) -> str:
        """Return the function that ``place``, "FILE:LINE", is in; "" where it is in no file."""
        name, _, number = place.rpartition(":")
        unit = self.unit()
        text = {f"{unit.name}.cu": unit.source, **unit.headers}.get(PurePath(name).name)
        return function_of(text.splitlines(), int(number)) if text is not None else ""


def kernel_of(keys: dict[str, Any]) -> Kernel:
    """Return the kernel of a config with only ``keys``, rendered once."""
    return kernel_in(json.dumps({**KEYS, **keys}))


@lru_cache(maxsize=64)
def kernel_in(config: str) -> Kernel:
    """Return the kernel of a config in JSON."""
    loaded = load_mapping(json.loads(config), "mutant")
    plan = build_plan(loaded.config)
    return Kernel.of(plan, render(plan, loaded, TEMPLATES))


@cache
def shipped(name: str) -> Kernel:
    """Return the kernel of a config of the repository."""
    loaded = load_config(find_configs([name])[0])
    plan = build_plan(loaded.config)
    return Kernel.of(plan, render(plan, loaded, TEMPLATES))


class CanChange(Protocol):
    """A change of a text: ``Change``, or one of a text that stands there literally."""

    def apply(self, text: str) -> str:
        """Make the change; AssertionError where it does not fit."""


class HasChanges(Protocol):
    """The attributes that ``mutated`` needs of a mutant."""

    @property
    def changes(self) -> tuple[CanChange, ...]:
        """Applied one after the other."""

    @property
    def in_header(self) -> bool:
        """Whether they are for the header of barrier constants."""


def mutated(kernel: Kernel, mutant: HasChanges) -> Kernel:
    """Return the mutated kernel; AssertionError where the edit does not fit any more."""
    for change in mutant.changes:
        if mutant.in_header:
            kernel = replace(kernel, header=change.apply(kernel.header))
        else:
            kernel = kernel.with_code(change.apply(kernel.code))
    return kernel


@cache
def ptx_of(kernel: Kernel) -> str:
    """Compile, with line information for findings."""
    return find_compiler("nvrtc").build_ptx(kernel.unit())


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
        self.recorder = Recorder(program_of(compiled.ptx), self._seed)
        recorder: Any = self.recorder
        return EmulatedKernel(plan, recorder)


@lru_cache(maxsize=8)
def program_of(ptx: str) -> Program:
    """Read and translate PTX, which takes longer than a small launch: once for many of them."""
    from fa4gen.emulator import Program

    return Program(ptx)


def compiled_of(kernel: Kernel) -> Any:
    """Return a compiled kernel as verify's emulator reads it: machine code takes as long again."""
    resources = Resources(128, 0, 0, 0, 0, 0)
    return SimpleNamespace(cubin=b"", ptx=ptx_of(kernel), resources=resources)


def verify(kernel: Kernel, case: str, seed: int) -> tuple[Verdict, list[Report]]:
    """Verify a kernel on a case under the schedule of ``seed``."""
    compiled = compiled_of(kernel)
    backend = RecordingBackend(kernel.plan.arch, seed)
    verdict = verify_kernel(kernel.plan, compiled, backend, VerifyOptions(seed, (case,)))
    assert backend.recorder is not None
    return verdict, backend.recorder.reports


def assert_right(kernel: Kernel, case: str, seed: int = 3) -> None:
    """Assert that verify passes a kernel on the one case of a name."""
    verdict, _ = verify(kernel, case, seed)
    assert verdict.passed, verdict
    assert verdict.num_cases == 1


def assert_numbers_differ(
    kernel: Kernel, change: Change, cases: tuple[str, ...], seed: int = 3
) -> None:
    """Assert that a change shows in the numbers of all of the cases together, and nowhere else."""
    changed = kernel.with_code(change.apply(kernel.code))
    verdicts = [verify(changed, case, seed)[0] for case in cases]
    assert [verdict.num_cases for verdict in verdicts] == [1] * len(cases)
    found = [failure for verdict in verdicts for case in verdict.cases for failure in case.failures]
    assert {failure.check for failure in found} == {"numbers"}


def failure(mutant: Mutant, kernel: Kernel, seed: int) -> str:
    """Return the error in the verdict on a mutant under ``seed``; "" where it is as expected."""
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
    if not any(matches(finding, found, kernel) for finding in report.findings
               for found in mutant.found):  # fmt: skip
        return f"none of {mutant.found} in {report}"
    return ""


def matches(finding: Finding, found: Found, kernel: Kernel) -> bool:
    """Whether ``finding`` of a run of ``kernel`` is the one that was expected."""
    return (
        finding.kind == found.kind
        and found.at in (ANYWHERE, kernel.function_at(finding.where))
        and found.who in finding.who
        and found.says in finding.message
    )


def function_of(lines: list[str], number: int) -> str:
    """Return the name of the function that a line is in; "kernel" for the entry point."""
    for line in reversed(lines[:number]):
        if line.startswith('extern "C"'):
            return "kernel"
        found = re.search(r"__device__ .*?(\w+)\(", line)
        if found:
            return found[1]
    return ""
