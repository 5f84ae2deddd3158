"""The shipped configs, their plans and their files, made once a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan
from fa4gen.render.environment import open_templates
from fa4gen.render.records import Records
from fa4gen.render.render import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan


@cache
def loaded(path: Path) -> LoadedConfig:
    """Return the config at ``path``, which is to be a shipped one."""
    return load_config(path)


@cache
def plan_of(path: Path) -> Plan:
    """Return its plan."""
    return build_plan(loaded(path).config)


@cache
def files_of(path: Path) -> Mapping[str, str]:
    """Return its files with the candidate that ships, by their ending: ``.cu``, ``_device.cuh``."""
    config = loaded(path)
    plan = build_plan(config.config, _records().choice(config.config).keys)
    files = render(plan, config, _templates()).files
    return {name.removeprefix(config.config.name): text for name, text in files.items()}


@cache
def _records() -> Records:
    return Records.below(Path(__file__).parents[1] / "generated")


_templates = cache(open_templates)
