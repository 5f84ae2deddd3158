"""Tuning of a config for problems: one record each, by measurement on a GPU if there is one."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal

from fa4gen.callables import compile_config
from fa4gen.config.load import load_mapping
from fa4gen.designs.build import build_plan
from fa4gen.errors import Fa4genError, MissingCapabilityError, Problem
from fa4gen.render.manifest import config_sha256
from fa4gen.render.own_templates import folder_sha256
from fa4gen.sweep.results import Outcome
from fa4gen.tune.candidates import (
    Candidate,
    Ranked,
    check_taken,
    find_candidates,
    given_keys,
    keys_sha256,
    rank,
    refine,
)
from fa4gen.tune.family import family_called, family_of
from fa4gen.tune.model.chips import chip_for, known_chip
from fa4gen.tune.search.measure import measure
from fa4gen.tune.search.record import Timed, TuneRecord
from fa4gen.tune.search.timer import GpuTimer
from fa4gen.version import __version__
from fa4gen.workers import Done

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan
    from fa4gen.executors import Executor
    from fa4gen.sweep.results import News, ResultsFile
    from fa4gen.toolchain.choose import Chosen
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.tune.model.chips import Chip
    from fa4gen.tune.search.timer import Timer
    from fa4gen.workers import Lost

Measuring = Literal["auto", "never"]


@dataclass(frozen=True)
class TuneOptions:
    """The options of tuning."""

    candidates: int = 8
    """Kernels that are measured at a problem: those that the model predicts to be the fastest."""
    refined: int = 3
    """The number of first candidates that are timed with changes that the model does not weigh,
    too."""
    rounds: int = 9
    """The most rounds of a problem."""
    seconds: float = 20.0
    """The time of measuring, in seconds, for each problem."""
    measuring: Measuring = "auto"
    """The use of a GPU; "auto": if there is one of the architecture."""
    again: int = 5
    """Rounds of the winner, the config itself and the peers after the choice, for their figures."""
    fa3: str = ""
    """Path of a FlashAttention-3 library, a peer of attention; "" without one."""
    chip: str = ""
    """For the model, where nothing is measured."""
    compiler: str = "auto"
    templates: Path | None = None
    """A folder of own templates, which kernels that are measured are made from."""


@dataclass(frozen=True)
class TuneTask:
    """One problem, with all that a worker needs to know."""

    name: str
    """The name of the config."""
    config: Mapping[str, Any]
    problem: str
    options: TuneOptions
    known_key: str = ""
    """Key of an earlier record that need not be found again."""


def tasks_for(
    base: LoadedConfig,
    problems: Sequence[Any],
    options: TuneOptions,
    earlier: Mapping[str, TuneRecord],
) -> list[TuneTask]:
    """Return a task for each problem; records of ``earlier`` that have a winner may be kept."""
    family = family_called(base.config.kernel)
    keys = given_keys(base)
    tasks = []
    for problem in problems:
        word = family.word(problem)
        known = earlier.get(word)
        key = known.key if known is not None and known.winner else ""
        tasks.append(TuneTask(base.config.name, keys, word, options, key))
    return tasks


def run_tune(
    tasks: Sequence[TuneTask],
    results: ResultsFile[TuneRecord],
    execute: Executor,
    report: Callable[[TuneRecord, News], None],
    earlier: Mapping[str, TuneRecord] | None = None,
    function: Callable[[TuneTask], Done[Outcome[TuneRecord]]] | None = None,
) -> list[TuneRecord]:
    """Run the tasks and return their records in order; each is on disk as soon as it is known.

    A task whose worker was lost gives a record with the reason and without a winner. ``earlier``
    are the records that tasks know of, by default those of ``results``.
    """
    known = results.records if earlier is None else earlier
    outcomes = execute(function or run_problem, tasks)
    found = results.take(outcomes, report, earlier=lambda task: known[task.problem], lost=_lost)
    ordered = [found[task.problem] for task in tasks]
    others = [record for word, record in results.records.items() if word not in found]
    results.rewrite([*ordered, *others])
    return ordered


def run_problem(
    task: TuneTask, make_timer: Callable[[str, str, TuneOptions], Timer | None] | None = None
) -> Done[Outcome[TuneRecord]]:
    """Tune for one problem: a failure of a kernel is in the outcome.

    ``make_timer``, by default ``gpu_timer``, returns a timer for kernels of a family and an
    architecture, or None without a GPU: the model then decides.
    """
    options = task.options
    candidates = _candidates(task.name, json.dumps(dict(task.config)))
    plan = candidates[0].plan
    family = family_of(plan)
    problem = family.parse_problem(task.problem)
    check_taken(candidates, problem)
    timer = (make_timer or gpu_timer)(plan.kernel, plan.arch, options)
    named = known_chip(plan.arch, options.chip)
    chip = named if timer is None else chip_for(plan.arch, timer.chip)
    where = named.name if timer is None else timer.chip
    ranked = rank(candidates, problem, chip)
    shown = _selected(ranked, problem, chip, options, refined=timer is not None)
    record = TuneRecord(
        base=task.name,
        problem=task.problem,
        extents=family.call_extents(plan, problem),
        chip=where,
        decided_by="model" if timer is None else "measurement",
        winner=ranked[0].candidate.name,
        kernels=tuple(_timed(one) for one in shown),
        key=_key(task, shown, where, timer is not None),
    )
    if record.key == task.known_key:
        return Done(Outcome())
    if timer is None:
        return Done(Outcome(replace(record, versions={"fa4gen": __version__})))
    try:
        return Done(Outcome(_measured(record, shown, problem, timer, options)))
    except Fa4genError as error:  # the state of the GPU is unknown
        failed = replace(record, winner="", problems=error.problems)
        return Done(Outcome(failed), worn=True)


def _measured(
    record: TuneRecord,
    shown: Sequence[Ranked],
    problem: Any,
    timer: Timer,
    options: TuneOptions,
) -> TuneRecord:
    """Return the record with the measurements."""
    from fa4gen.bench.machine import describe_versions

    kernels: list[tuple[Plan, CompiledKernel]] = []
    left_out: dict[str, str] = {}
    for one in shown:
        candidate = one.candidate
        try:
            chosen = _compiled(candidate, options)
        except MissingCapabilityError:
            raise
        except Fa4genError as error:
            left_out[candidate.name] = error.problems[0].message
            continue
        kernels.append((chosen.plan, chosen.kernel))
    if not kernels:
        problems = tuple(Problem(f"{name}: {why}") for name, why in left_out.items())
        return replace(record, winner="", problems=problems)
    rounds = timer.prepare(kernels, problem)
    left_out |= rounds.left_out
    existing = [one.candidate.name for one in shown if one.candidate.source != "tile"]
    found = measure(
        rounds,
        most_rounds=options.rounds,
        seconds=options.seconds,
        existing=existing,
        again=options.again,
        baseline=record.base,
    )
    names = {one.candidate.name for one in shown}
    problems = tuple(Problem(f"{name}: {why}") for name, why in left_out.items())
    return replace(
        record,
        winner=found.winner,
        clear=found.clear,
        kernels=tuple(
            replace(
                kernel,
                us=found.figure(kernel.name),
                rounds_us=_rounded(found.times.get(kernel.name, ())),
                again_us=_rounded(found.again.get(kernel.name, ())),
                left_out=left_out.get(kernel.name, ""),
            )
            for kernel in record.kernels
        ),
        peers_us={name: us for name in rounds.peers if (us := found.figure(name)) is not None},
        left_out={name: why for name, why in left_out.items() if name not in names},
        versions=describe_versions() | _own_templates(options),
        problems=() if found.winner else problems,
    )


def _own_templates(options: TuneOptions) -> dict[str, str]:
    """Return the hash of the own templates that kernels were made from, if there are any."""
    folder = options.templates
    return {} if folder is None else {"own templates": folder_sha256(folder)}


def _rounded(times: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(us, 3) for us in times)


def _selected(
    ranked: Sequence[Ranked], problem: Any, chip: Chip, options: TuneOptions, *, refined: bool
) -> list[Ranked]:
    """Return the first ones, refined ones, and the config itself, which every table compares with.

    Ones are refined to be measured only: the model cannot tell them apart.
    """
    shown = list(ranked[: options.candidates])
    names = {one.candidate.name for one in ranked}
    for first in shown[: options.refined] if refined else ():
        for one in _refined(first.candidate.name, json.dumps(given_keys(first.candidate.loaded))):
            if one.name not in names:
                names.add(one.name)
                family = family_of(one.plan)
                shown.append(Ranked(one, family.predict(one.plan, problem, chip)))
    own = next((one for one in ranked if one.candidate.source == "config"), None)
    return shown if own is None or own in shown else [*shown, own]


def _timed(one: Ranked) -> Timed:
    candidate = one.candidate
    keys = given_keys(candidate.loaded)
    return Timed(
        name=candidate.name,
        source=candidate.source,
        predicted_us=round(one.prediction.us, 3),
        config=keys,
        config_sha256=keys_sha256(keys),
    )


def _key(task: TuneTask, shown: Sequence[Ranked], chip: str, measured: bool) -> str:
    """Hash the inputs of the outcome: candidates, chip, the way of comparing."""
    options = task.options
    parts = {
        "generator": __version__,
        "configs": [config_sha256(one.candidate.loaded.config) for one in shown],
        "problem": task.problem,
        "chip": chip,
        "measured": [options.rounds, options.again, options.fa3, options.compiler]
        if measured
        else None,
    }
    if measured and options.templates is not None:
        parts["templates"] = folder_sha256(options.templates)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _lost(task: TuneTask, lost: Lost) -> TuneRecord:
    return TuneRecord(
        base=task.name,
        problem=task.problem,
        extents={},
        chip="",
        decided_by="model",
        winner="",
        problems=lost.problems("Run the same command again: it resumes."),
    )


@lru_cache(maxsize=32)
def _candidates(name: str, config: str) -> tuple[Candidate, ...]:
    return find_candidates(load_mapping(json.loads(config), name))


@lru_cache(maxsize=512)
def _refined(name: str, config: str) -> tuple[Candidate, ...]:
    loaded = load_mapping(json.loads(config), name)
    return refine(Candidate(loaded, build_plan(loaded.config), "tile", {}))


@lru_cache(maxsize=2)
def gpu_timer(kernel: str, arch: str, options: TuneOptions) -> Timer | None:
    """Return this machine's timer; None without a GPU of ``arch``, or where measuring is off."""
    from fa4gen.runtime.device import find_device

    family = family_called(kernel)
    device = find_device(arch) if options.measuring != "never" else None
    if device is None:
        return None
    return GpuTimer(family, device.name, options.fa3)


def kernels_to_compile(
    base: LoadedConfig, problems: Sequence[Any], options: TuneOptions
) -> tuple[list[Candidate], Callable[[Candidate], Done[bool]]]:
    """Return each kernel that will be timed, and the function that compiles one into the cache."""
    keys = json.dumps(given_keys(base))
    candidates = _candidates(base.config.name, keys)
    arch = base.config.arch
    timer = gpu_timer(base.config.kernel, arch, options)
    chip = known_chip(arch, options.chip) if timer is None else chip_for(arch, timer.chip)
    wanted: dict[str, Candidate] = {}
    for problem in problems:
        ranked = rank(candidates, problem, chip)
        for one in _selected(ranked, problem, chip, options, refined=timer is not None):
            wanted[one.candidate.name] = one.candidate
    return list(wanted.values()), partial(_compile_into_cache, options=options)


def _compiled(candidate: Candidate, options: TuneOptions) -> Chosen:
    """Return the kernel of ``candidate``; CompileError, MissingCapabilityError."""
    return compile_config(
        candidate.loaded, compiler=options.compiler, fixes=False, templates=options.templates
    )


def _compile_into_cache(candidate: Candidate, *, options: TuneOptions) -> Done[bool]:
    try:
        _compiled(candidate, options)
    except Fa4genError:
        return Done(False)
    return Done(True)
