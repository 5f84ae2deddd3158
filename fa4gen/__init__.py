"""Generator of specialised CUDA kernels: config -> plan -> files -> cubin -> proof.

``fa4gen.load("d128_causal_bf16")`` compiles the kernel of a config and returns it as a Python
function: an AttentionKernel, a GemmKernel, or with ``shapes="auto"`` a KernelSet. Everything else
is done by the command line, ``fa4gen --help``.
"""

from __future__ import annotations

from fa4gen.version import __version__ as __version__

TYPE_CHECKING = False  # that of typing takes a while, in which Ctrl-C prints a traceback
if TYPE_CHECKING:
    from typing import Any

    from fa4gen.api import load as load
    from fa4gen.errors import ArgumentError as ArgumentError
    from fa4gen.errors import CompileError as CompileError
    from fa4gen.errors import ConfigError as ConfigError
    from fa4gen.errors import Fa4genError as Fa4genError
    from fa4gen.errors import MissingCapabilityError as MissingCapabilityError
    from fa4gen.errors import Problem as Problem
    from fa4gen.runtime.attention import AttentionKernel as AttentionKernel
    from fa4gen.runtime.gemm import GemmKernel as GemmKernel
    from fa4gen.runtime.merge import MergeKernel as MergeKernel
    from fa4gen.tune.kernel_set import KernelSet as KernelSet

__all__ = (
    "ArgumentError",
    "AttentionKernel",
    "CompileError",
    "ConfigError",
    "Fa4genError",
    "GemmKernel",
    "KernelSet",
    "MergeKernel",
    "MissingCapabilityError",
    "Problem",
    "__version__",
    "load",
)
_MODULES = {
    "load": "fa4gen.api",
    "AttentionKernel": "fa4gen.runtime.attention",
    "GemmKernel": "fa4gen.runtime.gemm",
    "KernelSet": "fa4gen.tune.kernel_set",
    "MergeKernel": "fa4gen.runtime.merge",
}
"""The modules of the names in ``__all__``; others are errors."""


def __getattr__(name: str) -> Any:
    """Import the Python interface at its first use: the command line starts without it."""
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(_MODULES.get(name, "fa4gen.errors")), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name the interface too, before its first use."""
    return sorted({*globals(), *__all__})
