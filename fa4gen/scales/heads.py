"""Tensors of attention in e4m3, with a scale for each batch and key head, and means of values.

The weights of a row sum to one. So an output is the same if the mean of each column of values is
taken off them and added to it. Values without a mean are rounded in smaller steps, and tensor cores
with sums of few bits lose less of them: of 32768 values from N(1, 1), without promotion, 0.0003 of
the output in place of 0.30.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fa4gen.errors import ArgumentError, Problem
from fa4gen.scales.backends import backend_of
from fa4gen.scales.narrow import ELEMENTS, encode
from fa4gen.scales.quantize import LEAST_AMAX

_E4M3 = ELEMENTS["fp8_e4m3"]


@dataclass(frozen=True)
class QuantizedHeads:
    """Elements, scales and means, arrays of the module that was given."""

    elements: Any
    """(batch, rows, heads, depth), uint8 patterns of e4m3."""
    descales: Any
    """float32 (batch, key heads): what an element is multiplied by."""
    means: Any = None
    """float32 (batch, heads, depth), for ``add_means``; None where they were left in."""


def quantize_heads(
    x: Any, *, key_heads: int | None = None, take_means: bool = False
) -> QuantizedHeads:
    """Quantise a query, key or value: (batch, rows, heads, depth) of 16- or 32-bit floats.

    ``key_heads``: of a query, whose heads share the scale of their key head. ``take_means``: of
    values, the mean of each column over the rows is taken off. Raises ArgumentError for another
    number of axes, no rows, and heads that are no multiple of ``key_heads``.
    """
    backend = backend_of(x)
    xp, values = backend.xp, backend.as_float32(x)
    scaled = values.shape[2] if key_heads is None and len(values.shape) == 4 else key_heads
    _check(values, scaled)
    means = None
    if take_means:
        means = values.mean(axis=1, dtype=xp.float64).astype(xp.float32)
        values = values - means[:, None]
    batch, rows, heads, _ = values.shape
    grouped = xp.abs(values).reshape(batch, rows, scaled, -1).max(axis=(1, 3))
    descales = xp.maximum(grouped, np.float32(LEAST_AMAX)) / np.float32(_E4M3.largest)
    each = xp.repeat(descales, heads // scaled, axis=1)[:, None, :, None]
    return QuantizedHeads(
        backend.back(encode(values / each, _E4M3, xp)),
        backend.back(descales),
        None if means is None else backend.back(means),
    )


def add_means(out: Any, means: Any) -> Any:
    """Return an output (batch, rows, heads, depth) with the means of its values, as float32.

    For rows that see keys, whose weights sum to one: not for kernels with sinks.
    """
    backend = backend_of(out)
    xp, added = backend.xp, backend_of(means).array(means)
    each = xp.repeat(added, out.shape[2] // added.shape[1], axis=1)
    return backend.back(backend.as_float32(out) + each[:, None])


def _check(values: Any, key_heads: int | None) -> None:
    got = f"axes {values.shape}" + (f", key_heads {key_heads}" if key_heads else "")
    if len(values.shape) != 4 or 0 in values.shape or not key_heads or values.shape[2] % key_heads:
        expected = "(batch, rows, heads, depth), none of them 0, with heads a multiple of key_heads"
        raise ArgumentError(Problem(f"x: expected {expected}, got {got}", key="x"))
