"""Kernels from Python: ``fa4gen.load`` makes a callable from a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.config.load import LoadedConfig
    from fa4gen.runtime.attention import AttentionKernel
    from fa4gen.runtime.gemm import GemmKernel

NAMELESS = "kernel"
"""The name of a kernel whose config is a mapping without a name."""


def load(
    config: str | Path | Mapping[str, Any], *, compiler: str = "auto", cache: bool = True
) -> AttentionKernel | GemmKernel:
    """Render and compile the kernel of one config, and return it as a Python function.

    ``config`` is the name of a shipped config (``"d128_causal_bf16"``), the path of a YAML file, or
    the config itself as a mapping; ``compiler`` is "auto", "nvrtc" or "nvcc". With ``cache``,
    earlier results are taken from the user's cache folder. Works without a GPU; only calls of the
    kernel need one; AttentionKernel and GemmKernel document their arguments.

    Raises ConfigError for a config that is not found, not unique or cannot work, CompileError, and
    MissingCapabilityError where there is no compiler.
    """
    from fa4gen.config.load import load_mapping, locate
    from fa4gen.designs.build import build_plan
    from fa4gen.designs.registry import family_of
    from fa4gen.render.render import render
    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.compile import compile_kernel

    loaded = load_mapping(config, NAMELESS) if isinstance(config, Mapping) else _load_one(config)
    try:
        plan = build_plan(loaded.config)
    except ConfigError as error:
        raise locate(error, loaded) from error
    rendered = render(plan, loaded)
    compiled = compile_kernel(
        rendered.source,
        rendered.headers,
        plan.arch,
        name=plan.name,
        compiler=compiler,
        cache=Cache.default() if cache else None,
    )
    kernel: AttentionKernel | GemmKernel = family_of(plan).launcher.load()(plan, compiled.cubin)
    return kernel


def _load_one(config: str | Path) -> LoadedConfig:
    from fa4gen.config.load import find_configs, load_config

    paths = find_configs([config])
    if len(paths) != 1:
        raise ConfigError(
            Problem(
                f"{config} names {len(paths)} configs, and a kernel has one",
                remedy="name one of them: " + ", ".join(path.stem for path in paths[:10]),
            )
        )
    return load_config(paths[0])
