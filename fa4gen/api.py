"""Kernels from Python: ``fa4gen.load`` makes a callable from a config."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.config.load import LoadedConfig
    from fa4gen.runtime.attention import AttentionKernel
    from fa4gen.runtime.gemm import GemmKernel
    from fa4gen.shipped_names import AttentionName, GemmName
    from fa4gen.tune.kernel_set import KernelSet

NAMELESS = "kernel"
"""The name of a kernel whose config is a mapping without a name."""


@overload
def load(
    config: AttentionName,
    *,
    shapes: None = None,
    compiler: str = "auto",
    cache: bool = True,
    templates: str | Path | None = None,
) -> AttentionKernel: ...


@overload
def load(
    config: GemmName,
    *,
    shapes: None = None,
    compiler: str = "auto",
    cache: bool = True,
    templates: str | Path | None = None,
) -> GemmKernel: ...


@overload
def load(  # a config of the user's may be of either family, and a set of kernels
    config: str | Path | Mapping[str, Any],
    *,
    shapes: None = None,
    compiler: str = "auto",
    cache: bool = True,
    templates: str | Path | None = None,
) -> Any: ...


@overload
def load(
    config: str | Path | Mapping[str, Any],
    *,
    shapes: Literal["auto"] | Sequence[str],
    compiler: str = "auto",
    cache: bool = True,
    templates: str | Path | None = None,
) -> KernelSet: ...


def load(
    config: str | Path | Mapping[str, Any],
    *,
    shapes: Literal["auto"] | Sequence[str] | None = None,
    compiler: str = "auto",
    cache: bool = True,
    templates: str | Path | None = None,
) -> AttentionKernel | GemmKernel | KernelSet:
    """Render and compile the kernel of one config, and return it as a Python function.

    ``config`` is the name of a shipped config (``"d128_causal_bf16"``), the path of a YAML file, or
    the config itself as a mapping; ``compiler`` is "auto", "nvrtc" or "nvcc". With ``cache``,
    earlier results are taken from the user's cache folder. ``templates`` is a folder of own
    templates; a project's file is not read. Works without a GPU; only calls of the kernel need one;
    AttentionKernel and GemmKernel document their arguments. Type checkers know which of them a
    shipped name gives, and the result for a config of your own by an annotation:
    ``kernel: fa4gen.AttentionKernel = fa4gen.load("my.yaml")``.

    With ``shapes="auto"`` the result is a KernelSet: called like the kernel, it picks by the shapes
    of the arrays among the config itself, shipped configs that compute the same, and other tiles:
    what was measured to be the fastest on the chip, where fa4gen has a table for it, else by the
    cost model. It compiles a kernel when a call first needs it. With problems instead
    (``["16x4096x14336", "4096x4096x4096"]``) the kernels for these are compiled now, in parallel.
    The path of a set (``NAME.set.yaml``) or of a tuning table (``NAME.tuning.yaml``) gives a
    KernelSet of the kernels that it names.

    Raises ConfigError for a config that is not found, not unique or cannot work, and for a folder
    with a file that has no effect; TemplateError; CompileError; and MissingCapabilityError where
    there is no compiler.
    """
    from fa4gen.callables import as_callable, compile_config
    from fa4gen.config.load import load_mapping, locate
    from fa4gen.config.set_file import is_set_file

    own = None if templates is None else Path(templates)
    if own is not None:
        from fa4gen.render.own_templates import check_folder

        check_folder(own)
    if not isinstance(config, Mapping) and is_set_file(Path(config)):
        from fa4gen.tune.kernel_set import open_set

        kernels = open_set(Path(config), compiler=compiler, cache=cache, templates=own)
        kernels.compile(() if shapes in (None, "auto") else shapes)
        return kernels
    loaded = load_mapping(config, NAMELESS) if isinstance(config, Mapping) else _load_one(config)
    try:
        if shapes is not None:
            from fa4gen.tune.kernel_set import all_kernels

            kernels = all_kernels(loaded, compiler=compiler, cache=cache, templates=own)
            kernels.compile(() if shapes == "auto" else shapes)
            return kernels
    except ConfigError as error:
        raise locate(error, loaded) from error
    chosen = compile_config(loaded, compiler=compiler, cache=cache, templates=own)
    kernel: AttentionKernel | GemmKernel = as_callable(chosen.plan, chosen.kernel.cubin)
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
