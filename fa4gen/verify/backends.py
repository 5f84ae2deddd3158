"""The backends there are, and which of them this machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.verify.backend import Backend


def make_backends() -> tuple[Callable[[str], Backend], ...]:
    """Return the backends in order of preference, each to be called with an architecture."""
    from fa4gen.verify.emulator import EmulatorBackend
    from fa4gen.verify.gpu import GpuBackend

    return (GpuBackend, EmulatorBackend)


def pick_backend(arch: str) -> Backend | None:
    """Return the first backend for ``arch`` that this machine has, or None."""
    for make in make_backends():
        backend = make(arch)
        if backend.available():
            return backend
    return None
