"""Kernel parameters in the memory layout that the driver copies them from."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import TYPE_CHECKING

from fa4gen.runtime.tensor_map import TENSOR_MAP_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.common.model import Parameter

SLOT_ALIGNMENT = 64
"""Bytes: the alignment of a tensor map; more than enough for the rest."""


class ParameterBlock:
    """The values of one launch. Never changed once made, so that threads may share it."""

    def __init__(self, values: Iterable[bytes]) -> None:
        """Take the values in the order of the kernel's parameters, each as its bytes."""
        values = tuple(values)
        slots = [-(-len(value) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT for value in values]
        self._storage = ctypes.create_string_buffer(sum(slots) + SLOT_ALIGNMENT)
        address = -(-ctypes.addressof(self._storage) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT
        self._pointers = (ctypes.c_void_p * len(values))()
        for i, (value, slot) in enumerate(zip(values, slots, strict=True)):
            ctypes.memmove(address, value, len(value))
            self._pointers[i] = address
            address += slot

    @property
    def address(self) -> int:
        """The address of the array of pointers: the ``kernelParams`` of cuLaunchKernel."""
        return ctypes.addressof(self._pointers)

    def value(self, index: int, size: int) -> bytes:
        """Read the first ``size`` bytes of parameter number ``index``."""
        pointer = self._pointers[index]
        assert pointer is not None
        return ctypes.string_at(pointer, size)


def pack(
    parameters: Iterable[Parameter], values: Mapping[str, bytes | int | float]
) -> ParameterBlock:
    """Pick the value of each parameter by its name and convert it to the parameter's C type.

    KeyError for a parameter that has no value; values without a parameter are ignored.
    """
    return ParameterBlock(to_bytes(row.c_type, values[row.name]) for row in parameters)


def to_bytes(c_type: str, value: bytes | int | float) -> bytes:
    """Convert to the kernel's type; OverflowError or TypeError for unsuitable values."""
    kind = _kind(c_type)
    if kind == "map":
        if not isinstance(value, bytes) or len(value) != TENSOR_MAP_BYTES:
            raise TypeError(f"a tensor map is {TENSOR_MAP_BYTES} bytes, got {value!r}")
        return value
    if isinstance(value, bytes):
        raise TypeError(f"{c_type} takes a number, got {len(value)} bytes")
    if kind == "float":
        return bytes(ctypes.c_float(value))
    size = 4 if kind == "int32" else 8
    return int(value).to_bytes(size, "little", signed=kind != "pointer")


@lru_cache(maxsize=64)
def _kind(c_type: str) -> str:
    """Return "map", "pointer", "float", "int32" or "int64"; TypeError for any other type."""
    words = c_type.replace("*", " * ").split()
    if "*" in words:
        return "pointer"
    if "TensorMap" in words:
        return "map"
    for kind in ("float", "int32", "int64"):
        if kind in words:
            return kind
    raise TypeError(f"no rule for a parameter of type {c_type}")
