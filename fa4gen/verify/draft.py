"""The numbers of a case of attention before rounding, which kinds of data change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fa4gen.verify.rounding import LARGEST

if TYPE_CHECKING:
    from collections.abc import Mapping

Floats = NDArray[np.float32]


@dataclass
class Draft:
    """N(0, 1) numbers, before a kind has changed them."""

    rng: np.random.Generator
    dtype: str
    """The type of the query."""
    kv_dtype: str
    query: Floats
    key: Floats
    value: Floats
    scale: float
    values_in_keys: bool = False
    """The first columns of the keys are the values."""
    raised: tuple[int, int] = (0, 0)
    """Keys, from the first to before the second, with logits that a kind may raise above the
    others."""

    @property
    def depth(self) -> int:
        """Head dimension."""
        return int(self.query.shape[3])

    def key_positions(self) -> Floats:
        """0 at the first key to 1 at the last, shaped to be added along the key's rows."""
        return np.linspace(0, 1, self.key.shape[1], dtype=np.float32)[None, :, None]

    def scale_logits(self, powers: Mapping[str, int]) -> None:
        """Multiply queries and keys by powers of two, and divide the scale by both."""
        of_query, of_keys = powers[self.dtype], powers[self.kv_dtype]
        self.query *= 2.0**of_query
        self.key *= 2.0**of_keys
        self.scale *= 2.0 ** -(of_query + of_keys)

    def clip(self) -> None:
        """Keep inside the type's range, rounding included."""
        types = (self.dtype, self.kv_dtype, self.kv_dtype)
        for array, dtype in zip((self.query, self.key, self.value), types, strict=True):
            limit = np.float32(LARGEST[dtype] * (1 - 2.0**-6))
            np.clip(array, -limit, limit, out=array)
