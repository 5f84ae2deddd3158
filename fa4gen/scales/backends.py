"""The array module of an argument: NumPy, CuPy, or torch through either of them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.runtime.arrays import is_torch
from fa4gen.runtime.device import load_cupy

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Backend:
    """The functions that take arrays from a caller, and return them."""

    xp: Any
    """numpy or cupy."""
    array: Callable[[Any], Any]
    """Maps a caller's array to one of ``xp``, over the same memory."""
    back: Callable[[Any], Any]
    """Maps an array of ``xp`` to one of the caller's module."""

    def as_float32(self, x: Any) -> Any:
        """Return the numbers of ``x`` as a contiguous float32 array of ``xp``."""
        if is_torch(x):
            x = x.detach().float()
        return self.xp.ascontiguousarray(self.array(x).astype(self.xp.float32, copy=False))


def backend_of(array: Any) -> Backend:
    """Return the backend for ``array``; lists and the like become NumPy's."""
    if is_torch(array):
        torch = sys.modules["torch"]
        if array.is_cuda:
            on_gpu = load_cupy()
            return Backend(on_gpu, on_gpu.from_dlpack, torch.from_dlpack)
        return Backend(np, np.asarray, torch.from_numpy)
    cupy = sys.modules.get("cupy")
    if cupy is not None and isinstance(array, cupy.ndarray):
        return Backend(cupy, _same, _same)
    return Backend(np, np.asarray, _same)


def _same(array: Any) -> Any:
    return array
