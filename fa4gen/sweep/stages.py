"""Takes one case through plan, render, compile and verify, as far as requested, in a worker."""

from __future__ import annotations

import functools
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from fa4gen.counts import counted
from fa4gen.errors import ConfigError, Fa4genError, MissingCapabilityError, Problem
from fa4gen.sweep.planning import placed
from fa4gen.sweep.record import CaseRecord
from fa4gen.sweep.results import Outcome
from fa4gen.workers import Done

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan
    from fa4gen.render.environment import TemplateSet
    from fa4gen.render.render import RenderedKernel
    from fa4gen.sweep.record import Stage
    from fa4gen.toolchain.choose import Chosen
    from fa4gen.toolchain.model import CompiledKernel, Compiler
    from fa4gen.verify.verdict import Verdict

Until = Literal["rendered", "compiled", "verified"]


@dataclass(frozen=True)
class CaseTask:
    """A case that the schema accepts, with all that a worker needs to know."""

    sweep: str
    path: Path
    """The sweep file, for messages."""
    line: int
    column: int
    name: str
    config: Mapping[str, Any]
    varied: Mapping[str, Any]
    until: Until
    compiler: str
    seed: int
    patterns: tuple[str, ...]
    """Globs of the problems to verify on; empty for all."""
    strict: bool
    """Whether a kernel that is only partly emulated fails."""
    known_key: str
    """Key of an earlier result that need not be found again, or ""."""
    templates: Path | None = None
    """A folder of own templates."""


@dataclass
class _Case:
    """A case that is being processed."""

    task: CaseTask
    stage: Stage = "plan"
    proof: str = "not rendered"
    key: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    verdict: Verdict | None = None

    @contextmanager
    def at(self, stage: Stage) -> Iterator[None]:
        self.stage = stage
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = round(time.perf_counter() - started, 3)


def run_case(task: CaseTask) -> Done[Outcome[CaseRecord]]:
    """Run the stages that ``task`` asks for; every failure of a kernel is in the outcome."""
    from fa4gen.render.render import GENERATOR

    case = _Case(task)
    record = CaseRecord(
        sweep=task.sweep,
        case=task.name,
        outcome="passed",
        stage="plan",
        proof="",
        varied=task.varied,
        config=task.config,
        generator=GENERATOR,
    )
    problems: tuple[Problem, ...] = ()
    worn = False
    try:
        if not _run(case):
            return Done(Outcome())
        if case.verdict is not None and not case.verdict.passed:
            problems, worn = _verdict_problems(case.verdict), case.verdict.stopped
            record = replace(record, outcome="failed")
    except MissingCapabilityError as error:
        return Done(Outcome(missing=error.problems))
    except Fa4genError as error:
        problems = error.problems
        worn = case.stage == "verify"  # the state of the GPU is unknown
        refused = isinstance(error, ConfigError) and case.stage == "plan"
        record = replace(record, outcome="skipped" if refused else "failed")
    record = replace(
        record,
        stage=case.stage,
        proof=case.proof,
        key=case.key,
        problems=tuple(placed(p, task.path, task.line, task.column) for p in problems),
        seconds=case.seconds,
        facts=case.facts,
        verification=_verification(case.verdict) if case.verdict else {},
    )
    return Done(Outcome(record), worn)


def _run(case: _Case) -> bool:
    """Take ``case`` as far as requested; False where the earlier result is still valid."""
    from fa4gen.render.render import render
    from fa4gen.sweep.planning import plan_case, plan_facts

    task = case.task
    with case.at("plan"):
        loaded, plan = plan_case(task.config, task.name, task.path)
        case.facts = plan_facts(plan)
    with case.at("render"):
        rendered = render(plan, loaded, _templates(task.templates))
        case.proof = "rendered"
    case.key = _key(task, loaded, plan, rendered)
    if case.key == task.known_key:
        return False
    if task.until == "rendered":
        return True
    with case.at("compile"):
        chosen = _compile(task, loaded)
        plan, compiled = chosen.plan, chosen.kernel
        case.proof = "compiled"
        case.facts |= plan_facts(plan) | _facts(compiled)
    if task.until == "compiled":
        return True
    backend = _backend(plan.arch)
    if backend is None:
        return True  # the proof says that nothing was run
    from fa4gen.verify.run import VerifyOptions, verify_kernel

    with case.at("verify"):
        options = VerifyOptions(task.seed, task.patterns, strict=task.strict)
        case.verdict = verify_kernel(
            plan,
            compiled,
            backend,
            options,
            config=str(task.path),
            unit=chosen.candidate.unit,
        )
        if case.verdict.num_cases:  # the patterns may leave nothing to run
            case.proof = case.verdict.proof
    return True


def _key(task: CaseTask, loaded: LoadedConfig, plan: Plan, rendered: RenderedKernel) -> str:
    """Hash the inputs of the outcome: config, files, tools, the last stage and the problems."""
    import hashlib
    import json

    from fa4gen.render.manifest import config_sha256
    from fa4gen.render.own_templates import folder_sha256
    from fa4gen.render.render import GENERATOR

    compiler = None if task.until == "rendered" else _compiler(task.compiler)
    backend = _backend(plan.arch) if task.until == "verified" else None
    parts = {
        "generator": GENERATOR,
        "config": config_sha256(loaded.config),
        "files": dict(rendered.files),
        "until": task.until,
        "compiler": "" if compiler is None else f"{compiler.name} {compiler.version}",
        "backend": backend.name if backend else "",
        "patterns": task.patterns if backend else (),
        "strict": task.strict and backend is not None,
    }
    if task.templates is not None:  # a later candidate may be made from other files than the first
        parts["templates"] = folder_sha256(task.templates)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _compile(task: CaseTask, loaded: LoadedConfig) -> Chosen:
    from fa4gen.render.render import render
    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.choose import choose

    return choose(
        loaded,
        _compiler(task.compiler),
        cache=Cache.default(),
        render=functools.partial(render, templates=_templates(task.templates)),
        fixes=False,
    )


def _facts(compiled: CompiledKernel) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        **asdict(compiled.resources),
        "compiler": f"{compiled.compiler} {compiled.compiler_version}",
        "cached": compiled.cached,
    }


def _verification(verdict: Verdict) -> dict[str, Any]:
    return {
        "seed": verdict.seed,
        "num_cases": verdict.num_cases,
        "num_passed": verdict.num_passed,
        **({} if verdict.exercise is None else {"covered": verdict.exercise.summary()}),
    }


def _verdict_problems(verdict: Verdict) -> tuple[Problem, ...]:
    """Return the problems of a verdict."""
    again = f"fa4gen verify --seed {verdict.seed} reproduces it."
    wrong = [
        Problem(f"{result.case}: {failure.check}: {failure.message}", again)
        for result in verdict.cases
        for failure in result.failures
    ]
    left_out = verdict.num_cases - len(verdict.cases)
    if left_out:
        wrong.append(Problem(f"{left_out} of {counted(verdict.num_cases, 'case')} not run"))
    return (*verdict.problems, *wrong)


@functools.cache
def _templates(folder: Path | None) -> TemplateSet:
    from fa4gen.render.environment import open_templates

    return open_templates(folder)


@functools.cache
def _compiler(choice: str) -> Compiler:
    from fa4gen.toolchain.compile import find_compiler

    return find_compiler(choice)


@functools.cache
def _backend(arch: str) -> Any:
    from fa4gen.verify.backends import pick_backend

    return pick_backend(arch)
