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
    scores = _scores(q, k, mask)
    top = scores.max(-1, keepdims=True)
    total = np.exp(scores - top).sum(-1, keepdims=True)
    out = np.einsum("bhqk,bkhd->bqhd", np.exp(scores - top) / total, _repeated(v, q))
    return out, (top + np.log(total))[..., 0]


def gradients(q: Array, k: Array, v: Array, dout: Array, mask: str) -> tuple[Array, Array, Array]:
    """The gradients of q, k and v, given that of the output; shapes are those of attention."""
    _, log_sums = attention(q, k, v, mask)
    weights = np.exp(_scores(q, k, mask) - log_sums[..., None])
    of_weights = np.einsum("bqhd,bkhd->bhqk", dout, _repeated(v, q))
    mean = (weights * of_weights).sum(-1, keepdims=True)
    of_scores = weights * (of_weights - mean) * q.shape[-1] ** -0.5
    dq = np.einsum("bhqk,bkhd->bqhd", of_scores, _repeated(k, q))
    dk = np.einsum("bhqk,bqhd->bkhd", of_scores, q)
    dv = np.einsum("bhqk,bqhd->bkhd", weights, dout)
    return dq, _summed(dk, k), _summed(dv, v)


def _scores(q: Array, k: Array, mask: str) -> Array:
    """Scaled scores [batch, heads, rows, keys], minus infinity where the mask hides a key."""
    scores = np.einsum("bqhd,bkhd->bhqk", q, _repeated(k, q)) * q.shape[-1] ** -0.5
    if mask == "causal":
        rows, keys = scores.shape[-2:]
        seen = np.arange(keys) <= np.arange(rows)[:, None] + keys - rows
        scores = np.where(seen, scores, -np.inf)
    return scores


def _repeated(k: Array, q: Array) -> Array:
    """Keys or values once for each head of q."""
    return np.repeat(k, q.shape[2] // k.shape[2], axis=2)


def _summed(repeated: Array, k: Array) -> Array:
    """Gradients summed over the heads that share a head of k."""
    batch, keys, heads, depth = k.shape
    return repeated.reshape(batch, keys, heads, -1, depth).sum(3)


def distance(found: NDArray[Any], right: Array) -> float:
    """The relative Frobenius error; NaN where an element was never written."""
    found = found.astype(np.float64)
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))
