"""The shipped configs and their plans, read and planned once a process."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fa4gen.config.load import load_config
from fa4gen.designs.build import build_plan

if TYPE_CHECKING:
    from pathlib import Path

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
