"""Small problems for the kernels of the classes: numbers in, numbers out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import bfloat16
from numpy.typing import NDArray

from tests.emulator.classes.bug_class import Data

Make = Callable[[np.random.Generator], Data]
NOTHING = 0xDEADBEEF
"""The contents of outputs before they are written."""


def numbers(*shape: int, out: tuple[int, ...] | None = None) -> Make:
    """Random words ``in`` of a shape, and words ``out`` of the same or another."""

    def make(random: np.random.Generator) -> Data:
        return {
            "in": random.integers(0, 1 << 16, shape, np.uint32),
            "out": np.full(shape if out is None else out, NOTHING, np.uint32),
        }

    return make


def output(*shape: int, dtype: Any = np.uint32) -> Make:
    """Only ``out``, NaN where it can be."""
    nothing = np.nan if np.dtype(dtype).kind == "f" else NOTHING
    return lambda random: {"out": np.full(shape, nothing, dtype)}


def rows(steps: int, groups: int) -> Make:
    """Tiles of 64 rows and 16 columns in bf16 for wgmma, and row sums by so many warpgroups."""

    def make(random: np.random.Generator) -> Data:
        tiles = random.integers(-8, 9, (steps, 64, 16)).astype(bfloat16)
        return {"in": tiles, "out": np.full((groups, 64), np.nan, np.float32)}

    return make


def passed(*scalars: int) -> Callable[[Data], list[Any]]:
    """``in``, ``out``, then whole numbers of 32 bits."""
    return lambda data: [data["in"], data["out"], *map(np.int32, scalars)]


def only_out(*scalars: int) -> Callable[[Data], list[Any]]:
    return lambda data: [data["out"], *map(np.int32, scalars)]


def copied(data: Data) -> NDArray[Any]:
    return data["in"]


def filled(value: float) -> Callable[[Data], NDArray[Any]]:
    return lambda data: np.full_like(data["out"], value)
