"""Plans of a sweep's cases: one that the plan refuses is skipped, with the reason in its place."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.config.sweep import Sweep, SweepCase
    from fa4gen.designs.common.plans import Plan

_STAGES = re.compile(r"num_(\w+_)?stages")


def plan_case(config: Mapping[str, Any], name: str, path: Path) -> tuple[LoadedConfig, Plan]:
    """Return the config and the plan of a case of the sweep file ``path``; ConfigError."""
    from fa4gen.config.load import load_mapping
    from fa4gen.designs.build import build_plan

    loaded = load_mapping(config, name, path)
    return loaded, build_plan(loaded.config)


def plan_facts(plan: Plan) -> dict[str, int]:
    """Return the plan's resources of a kernel: dynamic shared memory, counts of stages."""
    stages = {name: value for name, value in plan.recorded if _STAGES.fullmatch(name)}
    return {"dynamic_shared_bytes": plan.launch.dynamic_shared_bytes, **stages}


def stages_in_words(facts: Mapping[str, Any]) -> str:
    """Return the counts of stages among ``facts``: "2 kv", "4, 2 epi"."""
    found = ((match, facts[name]) for name in facts if (match := _STAGES.fullmatch(name)))
    return ", ".join(f"{count} {(ring[1] or '').rstrip('_')}".strip() for ring, count in found)


def with_refusals(sweep: Sweep, on_case: Callable[[], object] = lambda: None) -> Sweep:
    """Return ``sweep`` with the reasons why the plan refuses a case among the case's problems."""

    def planned(case: SweepCase) -> SweepCase:
        problems = case.problems
        if not problems:
            try:
                plan_case(case.config, case.name, sweep.path)
            except ConfigError as error:
                problems = tuple(
                    placed(problem, sweep.path, case.line, case.column)
                    for problem in error.problems
                )
        on_case()
        return dataclasses.replace(case, problems=problems)

    return dataclasses.replace(sweep, cases=tuple(map(planned, sweep.cases)))


def placed(problem: Problem, path: Path, line: int, column: int) -> Problem:
    """Give a problem without a place that of its case in the sweep file ``path``."""
    from fa4gen.config.paths import shown_path

    if problem.line and problem.file:
        return problem
    if problem.file not in ("", str(path), shown_path(path)):
        return problem
    return dataclasses.replace(problem, file=shown_path(path), line=line, column=column)
