"""References of the compat tier's kernels, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def attention(q: Array, k: Array, v: Array, mask: str) -> tuple[Array, Array]:
    """Output [batch, rows, heads, depth] and natural log-sum-exp [batch, heads, rows].

    Tensors are [batch, rows, heads, depth]; a causal mask ends at the last key of the last row.
    """
    repeat = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, repeat, axis=2), np.repeat(v, repeat, axis=2)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    rows, keys = scores.shape[-2:]
    if mask == "causal":
        seen = np.arange(keys) <= np.arange(rows)[:, None] + keys - rows
        scores = np.where(seen, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    out = np.einsum("bhqk,bkhd->bqhd", weights / total, v)
    return out, (top + np.log(total))[..., 0]


def distance(found: NDArray[Any], right: Array) -> float:
    """The relative Frobenius error; NaN where an element was never written."""
    found = found.astype(np.float64)
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))
