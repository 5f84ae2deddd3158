"""An array as the checks of arguments see it."""

from __future__ import annotations

from typing import NamedTuple


class TensorView(NamedTuple):
    """Address and layout of an array. A tuple: the launcher's cache hashes it on every call."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes."""
    dtype: str
    """NumPy's name for it: "bfloat16", "float16", "float8_e4m3fn", "float32"."""
    device: int
    """Ordinal of the CUDA device; -1 for memory of the CPU."""
