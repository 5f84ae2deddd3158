"""Renders many configs, and reports every problem of all of them at once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fa4gen.config.paths import shown_path
from fa4gen.errors import ConfigError, Fa4genError, Problem, TemplateError
from fa4gen.json_text import parse_json
from fa4gen.render.choice import FIRST, choice_of, with_choice
from fa4gen.render.environment import TemplateSet, open_templates
from fa4gen.render.render import RenderedKernel, render

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.settings import Setting
    from fa4gen.designs.common.plans import Plan
    from fa4gen.render.choice import ChoiceRecord
    from fa4gen.render.records import Records

# A kernel takes a few milliseconds once the templates are compiled: fewer are done before a
# worker process has started.
_KERNELS_PER_WORKER = 50


@dataclass(frozen=True)
class RenderedConfig:
    """A config file and the kernel that it renders to."""

    config: Path
    kernel: RenderedKernel
    loaded: LoadedConfig
    plan: Plan

    @property
    def choice(self) -> ChoiceRecord:
        """The candidate, as its manifest names it."""
        return choice_of(parse_json(self.kernel.files[f"{self.kernel.name}.json"].encode()))

    @property
    def inputs(self) -> tuple[str, ...]:
        """All files that the kernel came from: the config with its base, and the templates."""
        return (*map(str, self.loaded.files), *self.kernel.template_files)


def render_configs(
    paths: Sequence[Path],
    user_templates: Path | None = None,
    jobs: int = 1,
    settings: Sequence[Setting] = (),
    recorded: Records | None = None,
) -> list[RenderedConfig]:
    """Return the rendered kernel of each config of ``paths``, changed by ``settings``, in order.

    Keys that a config leaves to a compiler are those of ``recorded``, else of the design's first
    candidate: nothing is compiled. Raises ConfigError with the problems of all configs, two configs
    of the same architecture and name among them, or TemplateError once for each place at fault.
    """
    templates = open_templates(user_templates)  # before any worker: the folder may not exist
    workers = min(jobs, len(paths) // _KERNELS_PER_WORKER)
    if workers > 1:
        from fa4gen.workers import map_tasks

        chunk = -(-len(paths) // workers)
        parts = [paths[i : i + chunk] for i in range(0, len(paths), chunk)]
        work = partial(
            _render_part, user_templates=user_templates, settings=settings, recorded=recorded
        )
        done = [
            result for part in map_tasks(work, parts, jobs=workers, inherit=True) for result in part
        ]
    else:
        done = [_render_one(path, templates, settings, recorded) for path in paths]
    _raise_failures([result for result in done if isinstance(result, Fa4genError)])
    rendered = [result for result in done if isinstance(result, RenderedConfig)]
    _refuse_same_names(rendered)
    return rendered


def plan_configs(
    paths: Sequence[Path], settings: Sequence[Setting] = (), recorded: Records | None = None
) -> list[tuple[LoadedConfig, Plan]]:
    """Return each config of ``paths`` with its plan; ConfigError with the problems of all.

    ``recorded``: see ``render_configs``.
    """
    done: list[tuple[LoadedConfig, Plan]] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            done.append(_load_and_plan(path, settings, recorded)[:2])
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(*problems)
    return done


def _render_part(
    paths: Sequence[Path],
    user_templates: Path | None,
    settings: Sequence[Setting],
    recorded: Records | None,
) -> list[RenderedConfig | Fa4genError]:
    templates = open_templates(user_templates)
    return [_render_one(path, templates, settings, recorded) for path in paths]


def _render_one(
    path: Path, templates: TemplateSet, settings: Sequence[Setting], recorded: Records | None
) -> RenderedConfig | Fa4genError:
    try:
        loaded, plan, choice = _load_and_plan(path, settings, recorded)
        rendered = with_choice(render(plan, loaded, templates), choice)
        return RenderedConfig(path, rendered, loaded, plan)
    except Fa4genError as error:
        return error


def _load_and_plan(
    path: Path, settings: Sequence[Setting], recorded: Records | None
) -> tuple[LoadedConfig, Plan, ChoiceRecord]:
    from fa4gen.config.load import load_config, locate
    from fa4gen.designs.build import build_plan

    loaded = load_config(path, settings)
    config = loaded.config
    choice = FIRST if recorded is None else recorded.choice(config)
    if choice.keys:
        with suppress(ConfigError):  # a version of other limits may have recorded it
            return loaded, build_plan(config, choice.keys), choice
        choice = FIRST
    try:
        return loaded, build_plan(config), choice
    except ConfigError as error:
        raise locate(error, loaded) from error


def _raise_failures(failures: list[Fa4genError]) -> None:
    config_problems = [p for f in failures if not isinstance(f, TemplateError) for p in f.problems]
    if config_problems:
        raise ConfigError(*config_problems)
    # One error in a template fails every config that uses it: report it once.
    by_place: dict[tuple[str, int], Problem] = {}
    for failure in failures:
        for problem in failure.problems:
            by_place.setdefault((problem.file, problem.line), problem)
    if by_place:
        raise TemplateError(*by_place.values())


def _refuse_same_names(rendered: list[RenderedConfig]) -> None:
    first: dict[str, Path] = {}
    problems = []
    for item in rendered:
        folder = item.kernel.folder
        if folder in first:
            problems.append(
                Problem(
                    f"the same arch and name as {shown_path(first[folder])}: "
                    f"both would be written to {folder}",
                    "Give one of them another name.",
                    file=shown_path(item.config),
                    key="name",
                )
            )
        first.setdefault(folder, item.config)
    if problems:
        raise ConfigError(*problems)
