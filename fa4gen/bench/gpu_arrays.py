"""Arrays on the GPU: random ones, poisoned ones, and the same memory as other types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fa4gen.runtime.device import load_cupy
from fa4gen.runtime.gemm_axes import GEMM_DTYPES
from fa4gen.runtime.strides import BITS_ACCEPTED
from fa4gen.scales.narrow import ELEMENTS
from fa4gen.verify.rounding import (
    POISON_BITS,
    bits_dtype,
    narrow_values,
    numpy_dtype,
    stored_bits,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

POOL = (1 << 24) + 43
"""Random numbers that are made; larger arrays repeat them. It divides no extent, so that rows and
tiles still differ."""


class RandomNumbers:
    """N(0, 1) numbers that follow from a seed, made once for each element type and scale."""

    def __init__(self, seed: int) -> None:
        """Make none and touch no GPU yet."""
        self.seed = seed
        self._pools: dict[tuple[str, float], Any] = {}

    def array(self, shape: tuple[int, ...], dtype: str, *, shift: int, scale: float = 1.0) -> Any:
        """Return bit patterns of N(0, scale^2) numbers; another ``shift``, other numbers.

        ``shape`` is that in memory: pairs of elements of four bits count as one.
        """
        pool = self._pool(dtype, scale)
        array = load_cupy().empty(math.prod(shape), pool.dtype)
        at, place = 0, shift * 1000003 % pool.size
        while at < array.size:
            count = min(pool.size - place, array.size - at)
            array[at : at + count] = pool[place : place + count]
            at, place = at + count, 0
        return array.reshape(shape)

    def float32(self, count: int) -> Any:
        """Return a few numbers as they are, in NumPy's memory."""
        import numpy as np

        return np.random.default_rng(self.seed).standard_normal(count, dtype=np.float32)

    def _pool(self, dtype: str, scale: float) -> Any:
        if (dtype, scale) not in self._pools:
            elements_per_byte = 8 // ELEMENTS[dtype].bits if dtype in ELEMENTS else 1
            numbers = self.float32(POOL * elements_per_byte) * scale
            self._pools[dtype, scale] = load_cupy().asarray(stored_bits(numbers, dtype))
        return self._pools[dtype, scale]


def poisoned(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an output full of NaN: reused memory may hold the right result."""
    return load_cupy().full(shape, POISON_BITS[dtype], bits_dtype(dtype))


def count_unwritten(out: Any, dtype: str) -> int:
    """Count the elements of a poisoned output that still are."""
    return int((out == POISON_BITS[dtype]).sum())


def zeros(shape: tuple[int, ...], dtype: str) -> Any:
    """Return zeros of the type that a launcher takes."""
    return load_cupy().zeros(shape, _given_dtype(dtype))


def viewed(bits: Any, dtype: str) -> Any:
    """Return bit patterns in the type that a launcher takes; None stays None."""
    return None if bits is None else bits.view(_given_dtype(dtype))


def as_float32(bits: Any, dtype: str, contiguous: int = -1) -> Any:
    """Convert CuPy's bit patterns of ``dtype`` to float32.

    Elements of four bits share bytes along the axis ``contiguous``.
    """
    cupy = load_cupy()
    bits = cupy.ascontiguousarray(bits)
    if dtype == "fp32":
        return bits.view(cupy.float32)
    if dtype == "fp16":
        return bits.view(cupy.float16).astype(cupy.float32)
    if dtype in ELEMENTS:
        return narrow_values(bits, dtype, contiguous, cupy)
    return (bits.astype(cupy.uint32) << 16).view(cupy.float32)


def as_torch(bits: Any, dtype: str) -> Any:
    """Share the memory of bit patterns with torch, as the element type; None stays None."""
    if bits is None:
        return None
    import torch

    signed = bits.view(f"int{8 * bits.itemsize}")
    return torch.from_dlpack(signed).view(getattr(torch, GEMM_DTYPES[dtype]))


def distance(theirs: Any, ours: Any) -> float:
    """Return the relative Frobenius distance of two torch tensors."""
    theirs, ours = theirs.float(), ours.float()
    return float((ours - theirs).norm() / theirs.norm())


def _given_dtype(dtype: str) -> DTypeLike:
    return BITS_ACCEPTED.get(dtype) or numpy_dtype(dtype)
