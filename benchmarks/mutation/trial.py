"""One mutant in a worker process: whether it is another kernel, and whether verify reports it."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from glob import escape
from typing import TYPE_CHECKING, Any, Literal

from cubin import Cubin
from same_code import code_hash, neutral_ptx

from fa4gen.errors import Fa4genError
from fa4gen.toolchain.compile import find_compiler
from fa4gen.verify.emulator import EmulatorBackend
from fa4gen.verify.run import VerifyOptions, verify_kernel
from fa4gen.workers import Done
from mutation.mutants import kernel_of, mutated
from tests.kernels.source_mutation import compiled_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fa4gen.toolchain.model import Unit
    from fa4gen.verify.verdict import Verdict
    from mutation.mutants import Mutant

Status = Literal["discarded", "caught", "survived", "unfinished"]


@dataclass(frozen=True)
class Candidate:
    """A mutant after compilation."""

    mutant: Mutant
    code: str = ""
    """Hash of its PTX, names and lines left out."""
    discarded: str = ""
    """Why it is not a mutant."""


@dataclass(frozen=True)
class Run:
    """The outcome of one seed of verify."""

    seed: int
    caught: bool
    case: str = ""
    """The case that failed."""
    says: str = ""
    """The first failure; the proof where all cases passed."""


@dataclass(frozen=True)
class Task:
    """A mutant to verify."""

    mutant: Mutant
    seeds: int


@dataclass(frozen=True)
class Record:
    """What is known of a mutant: a line of the results."""

    key: str
    design: str
    kernel: str
    config: str
    rule: str
    file: str
    line: int
    function: str
    number: int
    before: str
    after: str
    status: Status
    why: str = ""
    """Why it was discarded, or not finished."""
    runs: tuple[Run, ...] = ()
    seconds: float = 0.0

    @classmethod
    def of(cls, mutant: Mutant, status: Status, why: str = "", **rest: Any) -> Record:
        """Return the record of ``mutant``."""
        return cls(
            mutant.key, mutant.design, mutant.kernel, mutant.subject, mutant.rule, mutant.file,
            mutant.line, mutant.function, mutant.number, mutant.before, mutant.after,
            status, why, **rest,
        )  # fmt: skip

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Record:
        """Return the record of a line of results."""
        runs = tuple(Run(**run) for run in data["runs"])
        return cls(**{**data, "runs": runs})

    def data(self) -> dict[str, Any]:
        """Return the record as JSON data."""
        return asdict(self)

    def __str__(self) -> str:
        text = (
            f"{self.kernel}, {self.file}:{self.line} in {self.function}, {self.rule}:\n"
            f"  - {self.before}\n  + {self.after}"
        )
        for run in self.runs:
            if self.status != "caught":
                found = f"reported by {run.case}" if run.caught else f"passed, {run.says}"
                text += f"\n  seed {run.seed}: {found}"
        return f"{text}\n  {self.why}" if self.why else text


def compile_mutant(mutant: Mutant) -> Candidate:
    """Compile a mutant to PTX, and compare it with the kernel's own."""
    try:
        code = _ptx_hash(mutated(mutant).unit())
    except Fa4genError:
        return Candidate(mutant, discarded="does not compile")
    if code == _original_ptx(mutant.subject):
        return Candidate(mutant, discarded="same PTX")
    return Candidate(mutant, code)


def verify_mutant(task: Task) -> Done[Record]:
    """Verify a mutant with every seed, until one does not report it."""
    started = time.perf_counter()
    kernel = mutated(task.mutant)
    compiled = compiled_of(kernel)
    backend = EmulatorBackend(kernel.plan.arch)

    def verify(options: VerifyOptions) -> Verdict:
        return verify_kernel(kernel.plan, compiled, backend, options)

    runs = runs_of(verify, task.seeds)
    if not (runs[0].caught and runs[0].case) and (why := _no_mutant(task.mutant)):
        return Done(Record.of(task.mutant, "discarded", why))
    status: Status = "caught" if all(run.caught for run in runs) else "survived"
    seconds = round(time.perf_counter() - started, 2)
    return Done(Record.of(task.mutant, status, runs=runs, seconds=seconds))


def runs_of(verify: Callable[[VerifyOptions], Verdict], seeds: int) -> tuple[Run, ...]:
    """Verify with seeds 1 to ``seeds``: after the first, the case that failed before goes first."""
    runs: list[Run] = []
    for seed in range(1, seeds + 1):
        run = None
        if runs:
            run = _run(verify, VerifyOptions(seed, (escape(runs[0].case),), until_failure=True))
        if run is None or not run.caught:
            run = _run(verify, VerifyOptions(seed, until_failure=True))
        runs.append(run)
        if not run.caught:
            break
    return tuple(runs)


def _run(verify: Callable[[VerifyOptions], Verdict], options: VerifyOptions) -> Run:
    verdict = verify(options)
    if verdict.problems:
        return Run(options.seed, True, says=str(verdict.problems[0]))
    failed = [one for one in verdict.cases if not one.passed]
    if not failed:
        return Run(options.seed, False, says=verdict.proof)
    failure = failed[0].failures[0]
    return Run(options.seed, True, failed[0].case.name, f"{failure.check}: {failure.message}"[:300])


def _ptx_hash(unit: Unit) -> str:
    ptx = neutral_ptx(find_compiler("nvrtc").build_ptx(unit))
    return hashlib.sha256(ptx.encode()).hexdigest()


@cache
def _original_ptx(config: str) -> str:
    return _ptx_hash(kernel_of(config).unit())


def _no_mutant(mutant: Mutant) -> str:
    """Return why a mutant that no case reported is none; "" where it is one."""
    try:
        code = _machine_code(mutated(mutant).unit())
    except Fa4genError:
        return "ptxas refuses it"
    return "same machine code" if code == _original_machine_code(mutant.subject) else ""


@lru_cache(maxsize=64)
def _original_machine_code(config: str) -> str:
    return _machine_code(kernel_of(config).unit())


def _machine_code(unit: Unit) -> str:
    built = find_compiler("nvrtc").build(replace(unit, line_info=False))
    return code_hash(Cubin(built.cubin), reads_globals=True)
