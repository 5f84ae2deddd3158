"""Places of some scores, with tensors whose values float32 holds."""

from __future__ import annotations

import numpy as np

from fa4gen.expressions.places import Places


def places_of(seed: int, rows: int = 7, keys: int = 9, first_key: int = 0) -> Places:
    """Places of a rectangle of scores, the first rows before the first key."""
    rng = np.random.default_rng(seed)
    row = np.arange(rows)[:, None]
    return Places(
        row - 2 + first_key,
        np.arange(keys) + first_key,
        row,
        int(rng.integers(4)),
        int(rng.integers(2)),
        1,
        {
            "slope": rng.normal(size=4).astype(np.float32),
            "bias": rng.normal(size=(2, 64)).astype(np.float32),
            "document": rng.integers(0, 9, (2, keys)).astype(np.int32),
        },
    )
