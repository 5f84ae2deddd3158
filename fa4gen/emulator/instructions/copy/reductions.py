"""Elementwise reductions of memory (PTX ISA, "cp.reduce.async.bulk", "red.async")."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.instructions.copy.boxes import Combine
from fa4gen.emulator.instructions.scalar.rows.ieee import DTYPES, extreme_of, settled

OPERATIONS: Final = ("add", "min", "max", "inc", "dec", "and", "or", "xor")

_INTEGERS: Final = ("u32", "s32", "u64", "s64")
_HALVES: Final = ("f16", "bf16")
# which types an operation takes in a tensor or bulk reduction of global memory
_TYPES: Final = {
    "add": ("u32", "s32", "u64", "f32", "f64", *_HALVES),
    "min": (*_INTEGERS, *_HALVES),
    "max": (*_INTEGERS, *_HALVES),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": (*_INTEGERS, "b32", "b64"),
    "or": (*_INTEGERS, "b32", "b64"),
    "xor": (*_INTEGERS, "b32", "b64"),
}
_FLOATS: Final = {np.dtype(dtype): kind for kind, dtype in DTYPES.items()}


def _add(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return _settled(old + new, old, new)


def _extreme(largest: bool) -> Combine:
    of_integers = np.maximum if largest else np.minimum

    def combine(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
        if old.dtype.kind in "iu":
            return np.asarray(of_integers(old, new))
        return _settled(extreme_of(old, new, largest), old, new)

    return combine


def _settled(row: NDArray[Any], *operands: NDArray[Any]) -> NDArray[Any]:
    """The values with NaNs as arithmetic makes them."""
    kind = _FLOATS.get(row.dtype)
    return row if kind is None else np.asarray(settled(row, kind, *operands))


def _increment(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    result: NDArray[Any] = np.where(old >= new, old.dtype.type(0), old + old.dtype.type(1))
    return result


def _decrement(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    result: NDArray[Any] = np.where((old == 0) | (old > new), new, old - old.dtype.type(1))
    return result


_FUNCTIONS: Final[dict[str, Combine]] = {
    "add": _add,
    "min": _extreme(False),
    "max": _extreme(True),
    "inc": _increment,
    "dec": _decrement,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


_SHARED_TYPES: Final = {
    "add": ("u32", "s32", "u64"),
    "min": ("u32", "s32"),
    "max": ("u32", "s32"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32",),
    "or": ("b32",),
    "xor": ("b32",),
}


def find_shared(operation: str, kind: str) -> Combine | None:
    """Return the reduction for shared memory of a cluster, which has fewer types than ``find``."""
    return _FUNCTIONS[operation] if kind in _SHARED_TYPES[operation] else None


def find(operation: str, kind: str) -> Combine | None:
    """The function ``(old, new) -> result`` for an element type; None if there is none."""
    return _FUNCTIONS[operation] if kind in _TYPES[operation] else None
