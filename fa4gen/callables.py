"""From a loaded config and its plan to a kernel that Python can call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.shared.plans import Plan
    from fa4gen.toolchain.model import CompiledKernel


def compile_config(
    loaded: LoadedConfig, plan: Plan, *, compiler: str = "auto", cache: bool = True
) -> CompiledKernel:
    """Render and compile the kernel of ``plan``.

    ``compiler`` is "auto", "nvrtc" or "nvcc"; with ``cache``, earlier results are taken from the
    user's cache folder. Raises CompileError, and MissingCapabilityError without a compiler.
    """
    from fa4gen.render.render import render
    from fa4gen.toolchain.cache import Cache
    from fa4gen.toolchain.compile import compile_kernel

    rendered = render(plan, loaded)
    return compile_kernel(
        rendered.source,
        rendered.headers,
        plan.arch,
        name=plan.name,
        compiler=compiler,
        cache=Cache.default() if cache else None,
    )


def as_callable(plan: Plan, cubin: bytes) -> Any:
    """Return the launcher of a compiled kernel, an AttentionKernel or GemmKernel."""
    from fa4gen.designs.registry import family_of

    return family_of(plan).launcher.load()(plan, cubin)
