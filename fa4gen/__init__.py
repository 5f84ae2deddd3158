"""Generator of specialised CUDA kernels: config -> plan -> files -> cubin -> proof."""

from __future__ import annotations

from fa4gen.version import __version__ as __version__

TYPE_CHECKING = False  # that of typing takes a while, in which Ctrl-C prints a traceback
if TYPE_CHECKING:
    from typing import Any

    from fa4gen.api import load as load


def __getattr__(name: str) -> Any:
    """Import the Python interface at its first use: the command line starts without it."""
    if name == "load":
        from fa4gen.api import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name ``load`` too, before its first use."""
    return sorted({*globals(), "load"})
