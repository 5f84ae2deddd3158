"""Configs to the kernels of a vendored folder: planned, renamed, rendered, compiled."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fa4gen.config.load import load_config, locate
from fa4gen.errors import ConfigError, Problem
from fa4gen.plan.build import build_plan
from fa4gen.render.render import render
from fa4gen.toolchain.cache import Cache
from fa4gen.toolchain.compile import compile_kernel, find_compiler
from fa4gen.vendor.model import VendoredKernel
from fa4gen.vendor.names import with_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fa4gen.render.environment import TemplateSet


def build_kernels(
    configs: Sequence[str | Path],
    prefix: str,
    *,
    templates: TemplateSet | None = None,
    compiler: str = "auto",
) -> list[VendoredKernel]:
    """Plan, rename, render and compile each config file, in their order.

    Raises ConfigError, also for two configs of one name; CompileError; MissingCapabilityError.
    """
    loaded = [load_config(path) for path in configs]
    counts = Counter(item.config.name for item in loaded)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise ConfigError(
            *(
                Problem(
                    f"{counts[name]} configs are called {name}: "
                    + ", ".join(str(item.path) for item in loaded if item.config.name == name),
                    "A vendored folder has one function for each name: give one of them another "
                    "name (the key name, or the file's name).",
                )
                for name in twice
            )
        )
    tool = find_compiler(compiler)
    kernels = []
    for item in loaded:
        try:
            plan = with_prefix(build_plan(item.config), prefix)
        except ConfigError as error:
            raise locate(error, item) from error
        rendered = render(plan, item, templates)
        compiled = compile_kernel(
            rendered.source,
            rendered.headers,
            plan.arch,
            name=plan.name,
            compiler=tool,
            cache=Cache.default(),
        )
        kernels.append(VendoredKernel(item, plan, rendered, compiled))
    return kernels
