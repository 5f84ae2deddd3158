"""The records of the stand-in, as its C structs and as what Python works with."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Final

MAX_PARAMETERS: Final = 64
MAX_ATTRIBUTES: Final = 8
MAX_RANK: Final = 5
MAP_BYTES: Final = 128
_VALUE_BYTES: Final = 64
_U32 = ctypes.c_uint32
_U64 = ctypes.c_uint64
_I32 = ctypes.c_int32


@dataclass(frozen=True)
class Launch:
    """A call of cuLaunchKernelEx. ``order`` counts records of all kinds."""

    order: int
    entry: str
    device: int
    stream: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    attributes: tuple[tuple[int, bytes], ...]
    """CUlaunchAttributeID, and the 64 bytes of its value."""
    parameters: tuple[bytes, ...]
    """The bytes of each, as many as the cubin says that it has."""


@dataclass(frozen=True)
class TensorMapCall:
    """A call of cuTensorMapEncodeTiled; dimension 0 is the contiguous one."""

    order: int
    target: int
    """The host's address that the map was written to."""
    data_type: int
    pointer: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes, of every dimension but the first."""
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int
    swizzle: int
    l2_promotion: int
    fill: int
    result: int
    """The CUresult that the launcher was given."""
    encoded: bytes
    """The 128 bytes, zeros where the map was refused."""


@dataclass(frozen=True)
class Memset:
    """A call of cuMemsetD8Async."""

    order: int
    pointer: int
    value: int
    num_bytes: int
    stream: int


@dataclass(frozen=True)
class Image:
    """Machine code that cuLibraryLoadData was given."""

    order: int
    data: bytes


@dataclass(frozen=True)
class Setting:
    """A call of cuKernelSetAttribute."""

    order: int
    entry: str
    attribute: int
    value: int
    device: int


class _Parameter(ctypes.Structure):
    _fields_ = (("offset", _U32), ("size", _U32))


class CLaunch(ctypes.Structure):
    """struct launch."""

    _fields_ = (
        ("order", _U64),
        ("entry", ctypes.c_char_p),
        ("stream", _U64),
        ("device", _I32),
        ("grid", _U32 * 3),
        ("block", _U32 * 3),
        ("dynamic_shared", _U32),
        ("num_attributes", _U32),
        ("attributes", _U32 * MAX_ATTRIBUTES),
        ("values", (ctypes.c_ubyte * _VALUE_BYTES) * MAX_ATTRIBUTES),
        ("num_parameters", _U32),
        ("parameters", _Parameter * MAX_PARAMETERS),
        ("bytes", ctypes.c_void_p),
        ("num_bytes", _U32),
    )

    def record(self) -> Launch:
        """Return it as Python data."""
        raw = ctypes.string_at(self.bytes, self.num_bytes)
        rows = list(self.parameters)[: self.num_parameters]
        grid, block = (_triple(shape) for shape in (self.grid, self.block))
        return Launch(
            self.order,
            self.entry.decode(),
            self.device,
            self.stream,
            grid,
            block,
            self.dynamic_shared,
            tuple((self.attributes[i], bytes(self.values[i])) for i in range(self.num_attributes)),
            tuple(raw[row.offset : row.offset + row.size] for row in rows),
        )


class CMap(ctypes.Structure):
    """struct map."""

    _fields_ = (
        ("order", _U64),
        ("target", _U64),
        ("address", _U64),
        ("dims", _U64 * MAX_RANK),
        ("strides", _U64 * MAX_RANK),
        ("box", _U32 * MAX_RANK),
        ("steps", _U32 * MAX_RANK),
        ("data_type", _U32),
        ("rank", _U32),
        ("interleave", _U32),
        ("swizzle", _U32),
        ("l2", _U32),
        ("fill", _U32),
        ("result", _I32),
        ("encoded", ctypes.c_ubyte * MAP_BYTES),
    )

    def record(self) -> TensorMapCall:
        """Return it as Python data."""
        rank = min(self.rank, MAX_RANK)
        return TensorMapCall(
            self.order,
            self.target,
            self.data_type,
            self.address,
            tuple(self.dims[:rank]),
            tuple(self.strides[: max(rank - 1, 0)]),
            tuple(self.box[:rank]),
            tuple(self.steps[:rank]),
            self.interleave,
            self.swizzle,
            self.l2,
            self.fill,
            self.result,
            bytes(self.encoded),
        )


class CMemset(ctypes.Structure):
    """struct memset_call."""

    _fields_ = (
        ("order", _U64),
        ("address", _U64),
        ("num_bytes", _U64),
        ("stream", _U64),
        ("value", _U32),
    )

    def record(self) -> Memset:
        """Return it as Python data."""
        return Memset(self.order, self.address, self.value, self.num_bytes, self.stream)


class CImage(ctypes.Structure):
    """struct image."""

    _fields_ = (("order", _U64), ("data", ctypes.c_void_p), ("size", _U64))

    def record(self) -> Image:
        """Return it as Python data."""
        return Image(self.order, ctypes.string_at(self.data, self.size))


class CSetting(ctypes.Structure):
    """struct setting."""

    _fields_ = (
        ("order", _U64),
        ("entry", ctypes.c_char_p),
        ("attribute", _I32),
        ("value", _I32),
        ("device", _I32),
    )

    def record(self) -> Setting:
        """Return it as Python data."""
        return Setting(self.order, self.entry.decode(), self.attribute, self.value, self.device)


STRUCTS: Final = (CLaunch, CMap, CMemset, CImage, CSetting)
"""By the number of the kind, as in ``enum record``."""


def _triple(shape: Any) -> tuple[int, int, int]:
    x, y, z = shape
    return int(x), int(y), int(z)
