"""Runs a sweep: picks its shard, keeps results that are still valid, passes the rest to workers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Problem
from fa4gen.sweep.record import CaseRecord
from fa4gen.sweep.stages import CaseTask, Until, run_case
from fa4gen.version import __version__
from fa4gen.workers import run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from fa4gen.config.sweep import Sweep, SweepCase
    from fa4gen.executors import Executor
    from fa4gen.sweep.results import News, ResultsFile
    from fa4gen.verify.verdict import NamedCase
    from fa4gen.workers import Lost

GENERATOR = f"fa4gen {__version__}"


@dataclass(frozen=True)
class SweepOptions:
    """The options of a sweep."""

    until: Until = "verified"
    jobs: int = 1
    compiler: str = "auto"
    seed: int = 0
    patterns: tuple[str, ...] = ()
    strict: bool = False
    """A kernel that is only partly emulated fails."""
    templates: Path | None = None
    """A folder of own templates."""
    time_limit_s: float = 900.0
    """The limit for one case; a longer one is given up as hung."""


def select_shard(sweep: Sweep, shard: tuple[int, int]) -> Sweep:
    """Return every n-th case, from the i-th on, for the shard (i of n): no case is in two shards.

    Raises ConfigError for a shard without a case.
    """
    index, count = shard
    cases = sweep.cases[index - 1 :: count]
    if not cases:
        raise ConfigError(
            Problem(
                f"shard {index}/{count} holds no case: the sweep has {len(sweep.cases)}",
                f"Use {len(sweep.cases)} shards or fewer.",
                shown_path(sweep.path),
            )
        )
    return replace(sweep, cases=cases)


def run_sweep(
    sweep: Sweep,
    options: SweepOptions,
    results: ResultsFile[CaseRecord],
    report: Callable[[CaseRecord, News], None],
    execute: Executor | None = None,
) -> list[CaseRecord]:
    """Run the cases of ``sweep`` and return a record of each, in their order.

    Records are appended to ``results``, and ``report`` is called, as they come; the file is put in
    order at the end. Earlier results that passed and are still valid are kept. Cases run in worker
    processes of this machine, or where ``execute`` runs them. Raises
    MissingCapabilityError where nothing can be compiled on this machine.
    """
    refused = [_refused(case, sweep.name) for case in sweep.cases if case.problems]
    for record in refused:
        results.append(record)
        report(record, "new")
    tasks = [
        _task(case, sweep, options, results.records.get(case.name))
        for case in sweep.cases
        if not case.problems
    ]
    if execute is None:
        execute = partial(run_tasks, jobs=options.jobs, time_limit_s=options.time_limit_s)
    outcomes = execute(run_case, tasks)
    found = results.take(
        outcomes, report, earlier=lambda task: results.records[task.name], lost=_lost
    )
    records = {record.case: record for record in refused} | found
    ordered = [records[case.name] for case in sweep.cases]
    results.rewrite(ordered)
    return ordered


def check_patterns(sweep: Sweep, patterns: tuple[str, ...]) -> None:
    """Raise ConfigError for globs that name no problem to verify any kernel of ``sweep`` on."""
    if not patterns:
        return
    from fa4gen.config.load import config_from_data
    from fa4gen.designs.build import build_plan
    from fa4gen.verify.choose import check_patterns as check
    from fa4gen.verify.family import family_of

    known: list[NamedCase] = []
    for case in sweep.cases:
        if not case.problems:
            try:
                plan = build_plan(config_from_data(case.config, case.name))
            except ConfigError:
                continue  # the plan refuses it: skipped, with the reason, when its turn comes
            known += family_of(plan).default_cases()
    check(known, patterns)


def architectures(cases: Iterable[SweepCase]) -> list[str]:
    """Return the architectures of the valid cases, each once."""
    return list(dict.fromkeys(str(case.config["arch"]) for case in cases if not case.problems))


def _task(
    case: SweepCase, sweep: Sweep, options: SweepOptions, earlier: CaseRecord | None
) -> CaseTask:
    settled = earlier is not None and earlier.outcome == "passed"  # a failure is tried again
    return CaseTask(
        sweep=sweep.name,
        path=sweep.path,
        line=case.line,
        column=case.column,
        name=case.name,
        config=case.config,
        varied=case.varied,
        until=options.until,
        compiler=options.compiler,
        seed=options.seed,
        patterns=options.patterns,
        strict=options.strict,
        templates=options.templates,
        known_key=earlier.key if earlier is not None and settled else "",
    )


def _refused(case: SweepCase, sweep: str) -> CaseRecord:
    return CaseRecord(
        sweep=sweep,
        case=case.name,
        outcome="skipped",
        stage="schema",
        proof="not rendered",
        problems=case.problems,
        varied=case.varied,
        config=case.config,
        generator=GENERATOR,
    )


def _lost(task: CaseTask, lost: Lost) -> CaseRecord:
    place = shown_path(task.path), task.line, task.column
    problems = tuple(
        one if one.place else Problem(one.message, one.remedy, *place, key=one.key)
        for one in lost.problems("Run the case alone to see more.")
    )
    return CaseRecord(
        sweep=task.sweep,
        case=task.name,
        outcome="failed",
        stage="worker",
        proof="not rendered",
        problems=problems,
        varied=task.varied,
        config=task.config,
        generator=GENERATOR,
    )
