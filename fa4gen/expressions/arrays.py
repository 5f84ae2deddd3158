"""The operations on arrays: NumPy's or CuPy's own, whose names they have."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fa4gen.expressions.words import BITS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Arrays:
    """The functions of ``xp``, numpy or cupy. Indices are int64: nothing overflows.

    ``tensors``: the declared ones, by name.
    """

    xp: Any
    tensors: Mapping[str, Any] = field(default_factory=dict)

    def number(self, value: int) -> Any:
        """Return a number of an expression."""
        return self.xp.int64(value)

    def element(self, name: str, *indices: Any) -> Any:
        """Return elements of a tensor; an index outside of it is that of the nearest one."""
        tensor = self.tensors[name]
        arrays = map(self.xp.asarray, indices)  # of a batch, say: CuPy clips no number
        within = zip(arrays, tensor.shape, strict=True)
        return self._read(
            tensor[tuple(self.xp.clip(index, 0, extent - 1) for index, extent in within)]
        )

    def bit(self, one: Any, index: Any) -> Any:
        """Return bits of numbers; of an index outside of them, the nearest."""
        within = self.xp.clip(self.xp.asarray(index), 0, BITS - 1)
        return self.xp.right_shift(one, within) & self.number(1)

    def __getattr__(self, name: str) -> Any:
        """Return the function of an operation."""
        return getattr(self.xp, name)

    def _read(self, elements: Any) -> Any:
        return elements.astype(self.xp.int64)


@dataclass(frozen=True)
class RealArrays(Arrays):
    """The operations with floats of type ``dtype``, "float32" or "float64"."""

    dtype: str = "float64"

    def real(self, value: float) -> Any:
        """Return a float as it is written."""
        return self.xp.dtype(self.dtype).type(value)

    def to_real(self, one: Any) -> Any:
        """Return whole numbers as floats."""
        return self.xp.asarray(one).astype(self.dtype)

    def real_where(self, condition: Any, first: Any, second: Any) -> Any:
        """Return the first where the condition holds, else the second."""
        return self.xp.where(condition, first, second)

    def __getattr__(self, name: str) -> Any:
        """Return the function of an operation."""
        return getattr(self.xp, name.removeprefix("real_"))

    def _read(self, elements: Any) -> Any:
        return elements.astype(self.dtype if elements.dtype.kind == "f" else self.xp.int64)


def error_function(x: Any, xp: Any) -> Any:
    """Return the error function of an array, which neither package has as a function of its own."""
    import numpy as np  # not with the module: rendering does without

    if xp is not np:
        from cupyx.scipy.special import erf

        return erf(x)
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=np.float64).astype(x.dtype)
