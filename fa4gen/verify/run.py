"""Runs a kernel's cases on a backend and gathers the verdict."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from fa4gen.errors import Fa4genError
from fa4gen.proof_words import emulated_proof
from fa4gen.resources import usable_cpus
from fa4gen.verify.backend import StoppedError
from fa4gen.verify.choose import select_cases
from fa4gen.verify.coverage import exercise_of, run_further, with_places
from fa4gen.verify.family import family_of
from fa4gen.verify.judge import judge
from fa4gen.verify.report import coverage_problems
from fa4gen.verify.verdict import CaseVerdict, Check, Failure, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.settings import Setting
    from fa4gen.designs.common.plans import Plan
    from fa4gen.errors import Problem
    from fa4gen.toolchain.model import CompiledKernel, Unit
    from fa4gen.toolchain.ptx_places import Place
    from fa4gen.verify.backend import Backend, Runnable
    from fa4gen.verify.buffers import CaseMemory, Image
    from fa4gen.verify.build import BuiltKernel
    from fa4gen.verify.verdict import NamedCase

PickBackend = Callable[[str], "Backend | None"]
"""Maps an architecture to its backend; see ``backend.pick_backend``."""
OnCase = Callable[[int, int], None]
"""Called after each case of a kernel that this process verifies: how many are done, of how many."""
MAX_THREADS = 16
"""NumPy works on as many cases at a time; more are limited by memory bandwidth."""


@dataclass(frozen=True)
class VerifyOptions:
    """The cases and checks to run. One seed gives the same numbers, whichever cases are chosen."""

    seed: int
    patterns: tuple[str, ...] = ()
    """Globs of case names; empty for all."""
    large: bool = False
    """Add the cases with a reference computed on the GPU."""
    until_failure: bool = False
    """Emulate the cheapest cases first, in one process, and none after one that fails."""
    strict: bool = False
    """A kernel that is only partly emulated fails."""


def verify_configs(
    configs: Sequence[str | Path],
    options: VerifyOptions,
    *,
    pick: PickBackend,
    jobs: int = 1,
    compiler: str = "auto",
    emulates_all: bool = False,
    settings: Sequence[Setting] = (),
    templates: Path | None = None,
    on_case: OnCase | None = None,
) -> Iterator[Verdict]:
    """Verify many: compiled by ``jobs`` processes, run in turn; yields verdicts as they come.

    ``settings`` change each config, ``templates`` is a folder of own templates.
    With ``emulates_all`` the caller asserts that ``pick`` returns backends on the CPU only; then
    the processes run their kernels, too, and share the cases of a kernel where there are more
    processes than kernels. ``pick`` must then be a module's function.

    Once a kernel has crashed or hung, the rest is compiled but not run: see ``StoppedError``.
    """
    if jobs > 1 and emulates_all:
        build = partial(
            _build_and_verify, compiler=compiler, settings=settings, templates=templates
        )
        yield from _verify_in_processes(configs, options, pick, jobs, build, on_case)
        return
    from fa4gen.verify.build import build_kernels

    stopped = ""
    files = [str(config) for config in configs]
    for built in build_kernels(files, jobs, compiler, settings, templates):
        backend = pick(built.arch) if built.compiled is not None else None
        if stopped and backend is not None:
            message = f"not run, because {stopped} left the backend unusable"
            yield built.verdict(options.seed, problem=message, exit_status=1)
            continue
        verdict = verify_built(built, options, backend, on_case=on_case)
        if verdict.stopped:
            stopped = built.name
        yield verdict


def _verify_in_processes(
    configs: Sequence[str | Path],
    options: VerifyOptions,
    pick: PickBackend,
    jobs: int,
    build_and_verify: Callable[..., Verdict],
    on_case: OnCase | None,
) -> Iterator[Verdict]:
    """Verify several kernels in parallel, each in one process or in several."""
    from fa4gen.workers import map_tasks

    workers = min(jobs, len(configs))
    work = partial(build_and_verify, options=options, pick=pick, jobs=jobs // workers)
    if workers == 1:
        yield from map(partial(work, on_case=on_case), map(str, configs))
        return
    yield from map_tasks(work, [str(config) for config in configs], jobs=workers)


def _build_and_verify(
    config: str,
    *,
    options: VerifyOptions,
    pick: PickBackend,
    compiler: str,
    jobs: int,
    settings: Sequence[Setting],
    templates: Path | None,
    on_case: OnCase | None = None,
) -> Verdict:
    from fa4gen.verify.blas import use_one_blas_thread
    from fa4gen.verify.build import build_kernel

    use_one_blas_thread()
    built = build_kernel(config, compiler, settings, templates)
    backend = pick(built.arch) if built.compiled is not None else None
    return verify_built(built, options, backend, pick=pick, jobs=jobs, on_case=on_case)


def verify_built(
    built: BuiltKernel,
    options: VerifyOptions,
    backend: Backend | None,
    *,
    pick: PickBackend | None = None,
    jobs: int = 1,
    on_case: OnCase | None = None,
) -> Verdict:
    """Run a kernel that was built, if it was and there is a backend (see ``build``)."""
    if built.plan is None or built.compiled is None or backend is None:
        return built.verdict(options.seed)
    return verify_kernel(
        built.plan,
        built.compiled,
        backend,
        options,
        config=built.config,
        pick=pick,
        jobs=jobs,
        unit=built.unit,
        on_case=on_case,
    )


def verify_kernel(
    plan: Plan,
    compiled: CompiledKernel,
    backend: Backend,
    options: VerifyOptions,
    *,
    config: str = "",
    pick: PickBackend | None = None,
    jobs: int = 1,
    unit: Unit | None = None,
    on_case: OnCase | None = None,
) -> Verdict:
    """Run the cases of a compiled kernel that ``options`` choose.

    A kernel that is emulated is run by ``jobs`` processes, which take their backend from ``pick``,
    and further cases are added for code that the others did not reach, unless some were chosen.
    ``unit`` is the compiled unit, for the source lines of code that is not reached in the end.
    """
    started = time.perf_counter()
    chosen = choose_cases(plan, options, emulated=backend.emulates)
    if not chosen:  # nothing is run, so only this is known
        return Verdict(config, plan.name, plan.arch, "compiled", options.seed)
    if options.until_failure:
        chosen = tuple(sorted(chosen, key=family_of(plan).cost))
    shared = backend.emulates and pick is not None and jobs > 1 and not options.until_failure
    counter = _Counter(len(chosen), on_case)
    try:
        if shared:
            assert pick is not None
            # again, and before the fork, so that the child processes have it
            _loaded.cache_clear()
            kernel = _loaded(plan, compiled, pick, options.seed)
        else:
            kernel = _Kernel(plan, backend, backend.load(plan, compiled), options.seed)
    except Fa4genError as error:
        return Verdict(
            config=config,
            name=plan.name,
            arch=plan.arch,
            proof="compiled",
            seed=options.seed,
            problems=error.problems,
            exit_status=error.exit_status,
            facts=asdict(compiled.resources),
        )
    verdicts: list[CaseVerdict | None]
    if shared:
        assert pick is not None
        from fa4gen.workers import map_tasks

        check = partial(_check_in_worker, plan, compiled, pick, options.seed)
        cost = family_of(plan).cost
        verdicts = list(
            map_tasks(check, chosen, jobs=jobs, inherit=True, cost=cost, on_done=counter.count)
        )
    else:
        verdicts = kernel.check_all(chosen, counter, until_failure=options.until_failure)
    whole = not options.patterns
    if backend.emulates and whole:
        verdicts = [*verdicts, *run_further(plan, verdicts, kernel.check)]
    exercise = exercise_of(plan, verdicts, whole=whole)
    proof = backend.proof
    problems: tuple[Problem, ...] = ()
    if exercise is not None and whole:
        if unit is not None and all(one is not None and one.passed for one in verdicts):
            exercise = with_places(exercise, plan.unreachable, partial(_places, unit, compiled))
        proof = emulated_proof(len(exercise.not_run))
        problems = tuple(coverage_problems(plan.name, config, exercise, strict=options.strict))
    return Verdict(
        config=config,
        name=plan.name,
        arch=plan.arch,
        proof=proof,
        seed=options.seed,
        problems=problems,
        cases=tuple(verdict for verdict in verdicts if verdict is not None),
        num_cases=len(verdicts),
        exercise=exercise,
        stopped=kernel.stopped,
        seconds=time.perf_counter() - started,
        facts=asdict(compiled.resources),
    )


def choose_cases(
    plan: Plan, options: VerifyOptions, *, emulated: bool = False
) -> tuple[NamedCase, ...]:
    """Return the cases that ``options`` ask for, the large ones last; fewer for the emulator.

    A pattern that matches none of the emulator's own cases is matched with all cases.
    """
    family = family_of(plan)
    if emulated:
        chosen = select_cases(family.emulated_cases(), options.patterns)
        return chosen or select_cases(family.default_cases(), options.patterns)
    large = family.large_cases() if options.large else ()
    return select_cases((*family.default_cases(), *large), options.patterns)


def _places(unit: Unit, compiled: CompiledKernel, lines: Sequence[int]) -> dict[int, Place]:
    from fa4gen.toolchain.compile import find_compiler
    from fa4gen.toolchain.ptx_places import ptx_places

    return ptx_places(unit, compiled.ptx, lines, find_compiler(compiled.compiler))


def _check_in_worker(
    plan: Plan, compiled: CompiledKernel, pick: PickBackend, seed: int, case: NamedCase
) -> CaseVerdict | None:
    """Check one case of a kernel in a process that may have checked other cases of it."""
    return _loaded(plan, compiled, pick, seed).check(case)


@lru_cache(maxsize=1)
def _loaded(plan: Plan, compiled: CompiledKernel, pick: PickBackend, seed: int) -> _Kernel:
    backend = pick(plan.arch)
    assert backend is not None
    return _Kernel(plan, backend, backend.load(plan, compiled), seed)


class _Counter:
    """Counts the cases that are done."""

    def __init__(self, total: int, on_case: OnCase | None) -> None:
        self._total = total
        self._done = 0
        self._on_case = on_case

    def count(self) -> None:
        self._done += 1
        if self._on_case:
            self._on_case(self._done, self._total)


class _Kernel:
    """One kernel under test. Cases are worked on by several threads, and run one at a time."""

    def __init__(self, plan: Plan, backend: Backend, runnable: Runnable, seed: int) -> None:
        self._family = family_of(plan)
        self._runnable = runnable
        self._seed = seed
        self._array_module = backend.array_module
        self._same_bits = backend.same_bits
        self._emulates = backend.emulates
        self._turn = threading.Lock()
        self.stopped = False

    def check_all(
        self, cases: Sequence[NamedCase], counter: _Counter, *, until_failure: bool
    ) -> list[CaseVerdict | None]:
        """Return the verdicts in the order of the cases; None for those not run after a stop.

        ``until_failure`` is for the emulator: None for those after a failure, too.
        """

        def check(case: NamedCase, large: bool = False) -> CaseVerdict | None:
            verdict = self.check(case, large)
            counter.count()
            return verdict

        if self._emulates:  # nothing of it would run in parallel
            verdicts: list[CaseVerdict | None] = []
            failed = False
            for case in cases:
                verdict = None if failed and until_failure else check(case)
                failed = failed or verdict is None or not verdict.passed
                verdicts.append(verdict)
            return verdicts
        from concurrent.futures import ThreadPoolExecutor

        large = {case.name for case in self._family.large_cases()}
        with ThreadPoolExecutor(min(MAX_THREADS, usable_cpus())) as pool:
            small = [case for case in cases if case.name not in large]
            verdicts = list(pool.map(check, small))
        # One at a time: their references use the whole GPU, and much of its memory.
        return verdicts + [check(case, large=True) for case in cases if case.name in large]

    def check(self, case: NamedCase, large: bool = False) -> CaseVerdict | None:
        """Run one case and check its results; None after a stop."""
        verdict = self._check(case, large)
        if verdict is None or not self._emulates:
            return verdict
        return replace(verdict, coverage=self._runnable.take_coverage())

    def _check(self, case: NamedCase, large: bool) -> CaseVerdict | None:
        problem = self._family.draw(case, self._seed)
        memory = problem.memory
        images = self._run(case, memory, 2 if self._same_bits else 1)
        if not isinstance(images, list):
            return images
        if large:
            xp = self._array_module
        else:
            import numpy as xp
        reference = problem.reference(xp)
        failures, errors = judge(memory, images[0], images[-1], reference, xp)
        if not self._same_bits and not failures:  # an error in one run needs no other run
            images = self._run(case, memory, 1)
            if not isinstance(images, list):
                return images
            failures, _ = judge(memory, images[0], images[0], reference, xp)
        return CaseVerdict(case, failures, errors, reference.own, reference.bounds)

    def _run(
        self, case: NamedCase, memory: CaseMemory, times: int
    ) -> list[Mapping[str, Image]] | CaseVerdict | None:
        """Return memory after each of some runs, or why there is none; None after a stop."""
        try:
            with self._turn:
                if self.stopped:
                    return None
                try:
                    return [self._runnable.run(memory) for _ in range(times)]
                except StoppedError:
                    self.stopped = True
                    raise
        except Fa4genError as error:
            check: Check = "emulator" if self._emulates else "stopped"
            return CaseVerdict(case, tuple(Failure(check, why.message) for why in error.problems))
