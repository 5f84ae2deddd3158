"""From a loaded config to a kernel that Python can call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan
    from fa4gen.toolchain.choose import Chosen


def compile_config(
    loaded: LoadedConfig,
    *,
    compiler: str = "auto",
    cache: bool = True,
    fixes: bool = True,
    templates: Path | None = None,
) -> Chosen:
    """Return the candidate of ``loaded`` that compiles clean, with its plan and the kernel.

    ``compiler`` is "auto", "nvrtc" or "nvcc"; with ``cache``, earlier results are taken from the
    user's cache folder; ``templates`` is a folder of own ones. Raises ConfigError, CompileError,
    with changes that were seen to compile where ``fixes`` asks for them, and
    MissingCapabilityError without a compiler.
    """
    from functools import partial

    from fa4gen.render.environment import open_templates
    from fa4gen.render.render import render
    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.choose import choose
    from fa4gen.toolchain.compile import find_compiler

    kept = Cache.default() if cache else None
    by_templates = partial(render, templates=open_templates(templates))
    return choose(loaded, find_compiler(compiler), cache=kept, render=by_templates, fixes=fixes)


def as_callable(plan: Plan, cubin: bytes) -> Any:
    """Return the launcher of a compiled kernel, an AttentionKernel or GemmKernel."""
    from fa4gen.designs.registry import family_of

    return family_of(plan).launcher.load()(plan, cubin)
