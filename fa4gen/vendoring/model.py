"""A request for a vendored folder, and its kernels before and after they are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.config.load import LoadedConfig
    from fa4gen.designs.common.plans import Plan
    from fa4gen.render.render import RenderedKernel
    from fa4gen.toolchain.model import CompiledKernel
    from fa4gen.vendoring.lock import LockedTable


@dataclass(frozen=True)
class PlannedKernel:
    """A kernel under the folder's prefix, rendered and not yet compiled."""

    loaded: LoadedConfig
    plan: Plan
    """With the prefixed names."""
    rendered: RenderedKernel

    @property
    def name(self) -> str:
        """The config's name."""
        return self.loaded.config.name

    @property
    def symbol(self) -> str:
        """The C function's name: the prefix and the config's name."""
        return self.plan.name


@dataclass(frozen=True)
class VendoredKernel(PlannedKernel):
    """A kernel under the folder's prefix, compiled."""

    compiled: CompiledKernel


@dataclass(frozen=True)
class Request:
    """The prefix, kernels and adapters that a vendored folder is to hold."""

    prefix: str
    adapters: tuple[str, ...] = ()
    """Any of "torch", "jax", "tvm-ffi", "python", "hf-kernels"; C and CMake always come."""
    table: LockedTable | None = None
    """The kernels by problem of the tuning tables among the configs."""
