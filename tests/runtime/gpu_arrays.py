"""Arrays for the tests of launchers on a GPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np


def random(*shape: int, seed: int = 0, dtype: Any = ml_dtypes.bfloat16) -> np.ndarray[Any, Any]:
    """Return numbers of a normal distribution."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def to_gpu(array: Any) -> Any:
    """Return a copy on the GPU."""
    import cupy

    return cupy.asarray(array)
