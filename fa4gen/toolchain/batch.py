"""Compiles many kernels at once, in processes: NVRTC holds a lock while it compiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from fa4gen.errors import CompileError, Fa4genError, MissingCapabilityError, Problem
from fa4gen.toolchain.cache import content_key, key_ingredients
from fa4gen.toolchain.compile import compile_kernel, find_compiler, lint_problem
from fa4gen.toolchain.failures import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.model import CompiledKernel, Compiler, Unit
    from fa4gen.workers import Done, Lost


@dataclass(frozen=True)
class Outcome:
    """The result of compiling one kernel with one compiler."""

    unit: Unit
    compiler: str
    """"nvrtc" or "nvcc"."""
    kernel: CompiledKernel | None
    """None when the compiler refused it; may still be forbidden by the lint: see ``problems``."""
    problems: tuple[Problem, ...]
    """Why it does not count as compiled; empty when it does."""
    exit_status: int
    """0, 1 (refused, or forbidden by the lint) or 4 (the compiler cannot compile for it)."""
    is_final: bool = False
    """Whether no other tile would change it: the source is wrong, or the compiler is missing."""

    @property
    def compiled(self) -> bool:
        """Whether it may be called compiled: the compiler accepted it and the lint is clean."""
        return not self.problems

    def raise_problems(self) -> None:
        """Raise CompileError or MissingCapabilityError where it does not."""
        if self.problems:
            absent = self.exit_status == MissingCapabilityError.exit_status
            raise (MissingCapabilityError if absent else CompileError)(*self.problems)


def compile_many(
    units: Sequence[Unit],
    tool: Compiler,
    *,
    cache: Cache | None = None,
    jobs: int = 1,
    places: bool = True,
    on_done: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Compile every unit, ``jobs`` at a time; failures are outcomes, in the order of the units.

    ``on_done`` is called for each as it is ready. Cached units need no process. ``places``: find
    the source lines of the lint's findings, which takes a second compilation.
    """
    work = partial(_compile_one, cache=cache, places=places)
    outcomes: dict[int, Outcome] = {}

    def done(number: int, outcome: Outcome) -> None:
        outcomes[number] = outcome
        if on_done:
            on_done(outcome)

    to_compile = []
    for number, unit in enumerate(units):
        if jobs > 1 and not (cache and _is_cached(cache, unit, tool)):
            to_compile.append(number)
        else:
            done(number, work(unit, tool))
    if len(to_compile) == 1:  # not worth a process
        number = to_compile.pop()
        done(number, work(units[number], tool))
    if to_compile:
        _in_processes([(n, units[n]) for n in to_compile], tool.name, work, jobs, done)
    return [outcomes[number] for number in range(len(units))]


def _in_processes(
    tasks: Sequence[tuple[int, Unit]],
    compiler: str,
    compile_one: Callable[[Unit, Compiler], Outcome],
    jobs: int,
    done: Callable[[int, Outcome], None],
) -> None:
    from fa4gen.workers import Lost, run_tasks

    work = partial(_compile_by_name, compiler=compiler, compile_one=compile_one)
    for (number, unit), outcome in run_tasks(work, tasks, jobs=jobs):
        made = _lost(unit, compiler, outcome) if isinstance(outcome, Lost) else outcome.result
        done(number, made)


def _compile_by_name(
    task: tuple[int, Unit], *, compiler: str, compile_one: Callable[[Unit, Compiler], Outcome]
) -> Done[Outcome]:
    from fa4gen.workers import Done

    _, unit = task
    try:
        tool = _worker_compiler(compiler)
    except Fa4genError as error:
        return Done(_failed(unit, compiler, error))
    return Done(compile_one(unit, tool))


@lru_cache(maxsize=4)
def _worker_compiler(name: str) -> Compiler:
    """Return this process's compiler; its version is queried once."""
    return find_compiler(name)


def _compile_one(unit: Unit, tool: Compiler, *, cache: Cache | None, places: bool) -> Outcome:
    try:
        kernel = compile_kernel(
            unit.source,
            unit.headers,
            unit.arch,
            name=unit.name,
            compiler=tool,
            cache=cache,
            report=True,
            places=places,
        )
    except Fa4genError as error:
        return _failed(unit, tool.name, error)
    problems = tuple(lint_problem(kernel, f) for f in kernel.findings if f.forbids)
    status = CompileError.exit_status if problems else 0
    return Outcome(unit, tool.name, kernel, problems, status)


def _failed(unit: Unit, compiler: str, error: Fa4genError) -> Outcome:
    by_room = isinstance(error, RefusedError) and not any(one.file for one in error.diagnostics)
    return Outcome(unit, compiler, None, error.problems, error.exit_status, is_final=not by_room)


def _lost(unit: Unit, compiler: str, lost: Lost) -> Outcome:
    problem = Problem(
        f"a compiling process was lost: {lost.reason}",
        "If memory ran out, compile fewer at a time with -j.",
        file=f"{unit.name}.cu",
    )
    return Outcome(unit, compiler, None, (problem,), CompileError.exit_status, is_final=True)


def _is_cached(cache: Cache, unit: Unit, tool: Compiler) -> bool:
    return cache.load(content_key(key_ingredients(unit, tool))) is not None
