"""Takes the first candidate of a config that compiles clean: the compiler decides, no rule does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from fa4gen.config.load import locate
from fa4gen.designs.build import build_plan, candidates_of, relaxations_of
from fa4gen.designs.common.candidates import changed
from fa4gen.designs.common.refusal import in_words
from fa4gen.errors import ConfigError
from fa4gen.render.choice import ChoiceRecord, LeftOut
from fa4gen.render.manifest import json_data
from fa4gen.render.render import render
from fa4gen.strict import ModelError
from fa4gen.toolchain.batch import compile_many
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.candidates import Changes
    from fa4gen.designs.common.plans import Plan
    from fa4gen.errors import Problem
    from fa4gen.render.render import RenderedKernel
    from fa4gen.toolchain.batch import Outcome
    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.model import CompiledKernel, Compiler

Render: TypeAlias = "Callable[[Plan, LoadedConfig], RenderedKernel]"
Walk: TypeAlias = "Callable[[Sequence[LoadedConfig]], list[Chosen]]"
MOST_FIXES = 2
"""The most fixes that a refusal offers."""


@dataclass(frozen=True)
class Candidate:
    """Values for keys that a config leaves to the plan, with the resulting kernel."""

    changes: Changes
    plan: Plan
    rendered: RenderedKernel

    @property
    def unit(self) -> Unit:
        """The unit to compile."""
        kernel = self.rendered
        return Unit(kernel.name, kernel.source, kernel.headers, kernel.arch)


@dataclass(frozen=True)
class Left:
    """A candidate that did not compile clean."""

    candidate: Candidate
    why: str
    """The finding of the lint or the error of the compiler."""


@dataclass(frozen=True)
class Chosen:
    """The candidate that was taken, or the first where none compiled clean."""

    loaded: LoadedConfig
    candidate: Candidate
    outcome: Outcome
    left: tuple[Left, ...]
    """The candidates tried before it, in order."""

    @property
    def plan(self) -> Plan:
        """Its plan."""
        return self.candidate.plan

    @property
    def is_settled(self) -> bool:
        """Whether it compiled clean, or failed for a reason that no candidate changes."""
        return self.outcome.compiled or self.outcome.is_final

    @property
    def kernel(self) -> CompiledKernel:
        """The kernel, which the compiler must have compiled."""
        kernel = self.outcome.kernel
        assert kernel is not None
        return kernel

    @property
    def record(self) -> ChoiceRecord:
        """The choice as a manifest records it."""
        left = tuple(LeftOut(one.candidate.changes, one.why) for one in self.left)
        return ChoiceRecord(self.candidate.changes, self.compiler, left)

    @property
    def compiler(self) -> str:
        """Name and version of the compiler where it took it, else ""."""
        kernel = self.outcome.kernel
        taken = kernel is not None and self.outcome.compiled
        return f"{kernel.compiler} {kernel.compiler_version}" if kernel and taken else ""


def choose(
    loaded: LoadedConfig,
    compiler: Compiler,
    *,
    cache: Cache | None = None,
    render: Render = render,
    fixes: bool = True,
) -> Chosen:
    """Return the candidate of one config that compiles clean; see ``choose_many``.

    Raises CompileError without one, with the findings of the first candidate.
    """
    (chosen,) = choose_many([loaded], compiler, cache=cache, render=render, fixes=fixes)
    chosen.outcome.raise_problems()
    return chosen


def choose_many(
    configs: Sequence[LoadedConfig],
    compiler: Compiler,
    *,
    cache: Cache | None = None,
    jobs: int = 1,
    render: Render = render,
    fixes: bool = True,
    on_done: Callable[[], object] = lambda: None,
) -> list[Chosen]:
    """Return for each config the first candidate that the compiler takes, in their order.

    ``jobs`` kernels are compiled at a time: candidates of a config in parallel with fewer configs.
    One that has no such candidate keeps its first, with its problems, and with ``fixes`` changes
    with which it was seen to compile. Raises ConfigError with all problems of configs that cannot
    be planned, and TemplateError. ``on_done`` is called once for each config.
    """
    compile_units = partial(compile_many, tool=compiler, cache=cache, jobs=jobs, places=False)
    settled: set[tuple[str, str]] = set()

    def compiled(outcome: Outcome) -> None:
        kernel = (outcome.unit.arch, outcome.unit.name)
        if outcome.compiled and kernel not in settled:
            settled.add(kernel)
            on_done()

    def walk(some: Sequence[LoadedConfig], **options: Any) -> list[Chosen]:
        return _walk(some, partial(compile_units, **options), jobs, render)

    chosen = []
    for one in walk(configs, on_done=compiled):
        as_it_is = one.is_settled or not fixes
        chosen.append(one if as_it_is else _with_fixes(one, compile_units, walk))
    for _ in range(len(configs) - len(settled)):
        on_done()
    return chosen


def _walk(
    configs: Sequence[LoadedConfig],
    compile_units: Callable[[Sequence[Unit]], list[Outcome]],
    kernels: int,
    render: Render,
) -> list[Chosen]:
    """Compile ``kernels`` at a time, of all configs that are not settled yet."""
    walks = dict(enumerate(_begin(configs, render)))
    done: dict[int, Chosen] = {}
    while walks:
        ahead = max(1, kernels // len(walks))
        drawn = {number: list(islice(walk.rest, ahead)) for number, walk in walks.items()}
        units = [candidate.unit for few in drawn.values() for candidate in few]
        made = iter(compile_units(units))
        for number, few in drawn.items():
            tried = [(one, next(made)) for one in few]
            chosen = walks[number].settle(tried)
            if chosen is None and few:
                continue
            done[number] = chosen or walks[number].refused()
            del walks[number]
    return [done[number] for number in range(len(configs))]


def _begin(configs: Sequence[LoadedConfig], render: Render) -> list[_Walk]:
    """Return the ways of all configs; ConfigError with the problems of those without a plan."""
    problems: list[Problem] = []
    walks = []
    for loaded in configs:
        try:
            first = _candidate(loaded, {}, render)
        except ConfigError as error:
            problems += locate(error, loaded).problems
            continue
        walks.append(_Walk(loaded, _candidates(loaded, first, render)))
    if problems:
        raise ConfigError(*problems)
    return walks


def _candidates(loaded: LoadedConfig, first: Candidate, render: Render) -> Iterator[Candidate]:
    """Yield the candidates that can be planned, each text once."""
    seen = {first.rendered.source}
    yield first
    for changes in islice(candidates_of(loaded.config), 1, None):
        try:
            candidate = _candidate(loaded, changes, render)
        except (ConfigError, ModelError):
            continue
        if candidate.rendered.source not in seen:
            seen.add(candidate.rendered.source)
            yield candidate


def _candidate(loaded: LoadedConfig, changes: Changes, render: Render) -> Candidate:
    plan = build_plan(loaded.config, changes)
    return Candidate(changes, plan, render(plan, loaded))


class _Walk:
    """The way of one config through its candidates."""

    def __init__(self, loaded: LoadedConfig, rest: Iterator[Candidate]) -> None:
        self.loaded = loaded
        self.rest = rest
        self._left: list[tuple[Candidate, Outcome]] = []

    def settle(self, tried: Iterable[tuple[Candidate, Outcome]]) -> Chosen | None:
        """Return the first of ``tried`` that is taken, or after which no other can be; or None."""
        for candidate, outcome in tried:
            chosen = Chosen(self.loaded, candidate, outcome, _left(self._left))
            if chosen.is_settled:
                return chosen
            self._left.append((candidate, outcome))
        return None

    def refused(self) -> Chosen:
        """Return the first candidate, which did not compile clean either."""
        (candidate, outcome), *others = self._left
        return Chosen(self.loaded, candidate, outcome, _left(others))


def _left(tried: Iterable[tuple[Candidate, Outcome]]) -> tuple[Left, ...]:
    return tuple(Left(one, made.problems[0].message.split("\n")[0]) for one, made in tried)


def _with_fixes(refused: Chosen, recompile: Callable[..., list[Outcome]], walk: Walk) -> Chosen:
    """Return a config without a clean candidate, with source lines, and fixes that compiled."""
    words = in_words(_fixes(refused.loaded, walk))
    (outcome,) = recompile([refused.candidate.unit], places=True)
    first, *others = outcome.problems
    problems = (replace(first, remedy=words or first.remedy), *others)
    return replace(refused, outcome=replace(outcome, problems=problems))


def _fixes(loaded: LoadedConfig, walk: Walk) -> list[Changes]:
    """Return changes with which it compiles clean, of the first kind that has any."""
    for kind in relaxations_of(loaded.config):
        if found := list(islice(_that_compile(loaded, kind, walk), MOST_FIXES)):
            return found
    return []


def _that_compile(loaded: LoadedConfig, kind: Iterable[Changes], walk: Walk) -> Iterator[Changes]:
    for changes in kind:
        try:
            (found,) = walk([replace(loaded, config=changed(loaded.config, changes))])
        except (ConfigError, ModelError):
            continue
        if found.outcome.compiled:
            yield {
                key: _value(found.plan, key) if value == "auto" else value
                for key, value in changes.items()
            }


def _value(plan: Plan, key: str) -> object:
    """Return the plan's value of ``key``, in the form of a config."""
    value = next((row.value for row in plan.choices if row.key == key), "auto")
    return json_data(value)
