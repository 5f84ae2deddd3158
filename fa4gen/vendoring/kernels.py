"""Configs to the kernels of a vendored folder: planned, renamed, rendered, compiled."""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from typing import TYPE_CHECKING

from fa4gen.config.load import load_config, locate
from fa4gen.config.paths import shown_path
from fa4gen.counts import counted
from fa4gen.designs.build import build_plan
from fa4gen.errors import CompileError, ConfigError, MissingCapabilityError, Problem
from fa4gen.render.choice import FIRST, with_choice
from fa4gen.render.environment import open_templates
from fa4gen.render.render import render
from fa4gen.toolchain.cache import Cache
from fa4gen.toolchain.choose import choose_many
from fa4gen.toolchain.compile import find_compiler
from fa4gen.vendoring.family import family_of
from fa4gen.vendoring.folder_files import HEADER_PARTS, ROOTS
from fa4gen.vendoring.model import PlannedKernel, VendoredKernel
from fa4gen.vendoring.names import interface_names, taken_names, with_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.settings import Setting
    from fa4gen.designs.common.plans import Plan
    from fa4gen.render.choice import ChoiceRecord
    from fa4gen.render.environment import TemplateSet
    from fa4gen.render.render import RenderedKernel
    from fa4gen.toolchain.choose import Render


def build_kernels(
    configs: Sequence[str | Path],
    prefix: str,
    *,
    templates: TemplateSet | None = None,
    compiler: str = "auto",
    jobs: int = 1,
    settings: Sequence[Setting] = (),
) -> list[VendoredKernel]:
    """Plan, rename, render and compile each config file, in their order.

    Raises ConfigError, also for two configs of one name; CompileError; MissingCapabilityError.
    """
    loaded = load_configs(configs, settings)
    return compile_kernels(loaded, prefix, templates, compiler=compiler, jobs=jobs)


def load_configs(
    configs: Sequence[str | Path], settings: Sequence[Setting] = ()
) -> list[LoadedConfig]:
    """Read config files, in their order; ConfigError with the problems of all of them."""
    loaded = []
    problems: list[Problem] = []
    for path in configs:
        try:
            loaded.append(load_config(path, settings))
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(*problems)
    return loaded


def render_kernels(
    loaded: Sequence[LoadedConfig],
    prefix: str,
    templates: TemplateSet | None = None,
    choices: Sequence[ChoiceRecord] = (),
) -> list[PlannedKernel]:
    """Plan, rename and render each config; ConfigError, TemplateError.

    ``choices``: what was taken of each, where that is known; else it is the first candidate.
    """
    render = _renderer(loaded, prefix, templates)
    planned = []
    problems: list[Problem] = []
    for item, choice in zip(loaded, choices or repeat(FIRST), strict=False):
        try:
            plan = build_plan(item.config, choice.keys)
            rendered = with_choice(render(plan, item), choice)
        except ConfigError as error:
            problems += locate(error, item).problems
            continue
        planned.append(PlannedKernel(item, with_prefix(plan, prefix), rendered))
    if problems:
        raise ConfigError(*problems)
    return planned


def compile_kernels(
    loaded: Sequence[LoadedConfig],
    prefix: str,
    templates: TemplateSet | None = None,
    *,
    compiler: str = "auto",
    jobs: int = 1,
    on_done: Callable[[], object] = lambda: None,
) -> list[VendoredKernel]:
    """Plan, rename, render and compile each config, ``jobs`` at a time.

    Raises ConfigError, TemplateError, CompileError, MissingCapabilityError.
    """
    chosen = choose_many(
        loaded,
        find_compiler(compiler),
        cache=Cache.default(),
        jobs=jobs,
        render=_renderer(loaded, prefix, templates),
        on_done=on_done,
    )
    failed = [one.outcome for one in chosen if one.outcome.problems]
    if failed:
        absent = all(o.exit_status == MissingCapabilityError.exit_status for o in failed)
        kind = MissingCapabilityError if absent else CompileError
        raise kind(*(problem for outcome in failed for problem in outcome.problems))
    return [
        VendoredKernel(
            one.loaded,
            with_prefix(one.plan, prefix),
            with_choice(one.candidate.rendered, one.record),
            one.kernel,
        )
        for one in chosen
    ]


def _renderer(loaded: Sequence[LoadedConfig], prefix: str, templates: TemplateSet | None) -> Render:
    """Return the function that renders a kernel for a folder; ConfigError for names that clash."""
    _refuse_same_names(loaded)
    templates = templates or open_templates()
    _refuse_taken_names(loaded, prefix, templates)

    def renamed(plan: Plan, item: LoadedConfig) -> RenderedKernel:
        named = with_prefix(plan, prefix)
        family_of(named).refuse(named)
        return render(named, item, templates)

    return renamed


def _refuse_same_names(loaded: Sequence[LoadedConfig]) -> None:
    counts = Counter(item.config.name for item in loaded)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise ConfigError(
            *(
                Problem(
                    f"{counted(counts[name], 'config')} are called {name}: "
                    + ", ".join(shown_path(x.path) for x in loaded if x.config.name == name),
                    "A vendored folder has one function for each name: give one of them another "
                    "name (the key name, or the file's name).",
                )
                for name in twice
            )
        )


def _refuse_taken_names(
    loaded: Sequence[LoadedConfig], prefix: str, templates: TemplateSet
) -> None:
    """Raise ConfigError for kernels whose C names something else of the folder has."""
    names = (*(name for _, name in ROOTS), *HEADER_PARTS)
    interface = interface_names(templates.source(name).text for name in names)
    taken = taken_names([item.config.name for item in loaded], interface)
    problems = [
        Problem(
            f"{item.config.name}: the kernel would need the C name {prefix}_{words}",
            "Give the kernel another name (the key name, or the file's name).",
            file=shown_path(item.path),
            key="name",
        )
        for item in loaded
        if (words := taken.get(item.config.name))
    ]
    if problems:
        raise ConfigError(*problems)
