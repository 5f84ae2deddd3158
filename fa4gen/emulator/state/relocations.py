"""Raw bytes as arguments of a launch, in which some words are addresses of arrays.

A parameter that is a struct (pointers among numbers, tensor maps) is given as ``Bytes``; an array
that holds addresses of other arrays, or that must be at a known address, as ``Memory``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.state.map_bits import MAP_ALIGN, MAP_BYTES
from fa4gen.emulator.state.tensor_map import TensorMap

POINTER_BYTES: Final = 8


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """An array of global memory that is more than an argument: raw bytes, at an address.

    pointers  by offset in bytes into ``array``: the target of the 8-byte word there, an array (or
              Memory), or a pair of it and an offset in bytes. The array is C-contiguous then.
              A word that the kernel did not change holds its old value again after the launch
    maps      by offset, tensor maps of 128 bytes; the address of each is a multiple of 64
    address   the array's address in global memory, if that matters: at least FIXED_BASE
    name      the array's name in findings
    """

    array: NDArray[Any]
    pointers: Mapping[int, Any] = field(default_factory=dict)
    maps: Mapping[int, TensorMap] = field(default_factory=dict)
    address: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Bytes:
    """A parameter as bytes, with ``pointers`` and ``maps`` by offset as in Memory.

    The data under a pointer or a map does not count.
    """

    data: bytes
    pointers: Mapping[int, Any] = field(default_factory=dict)
    maps: Mapping[int, TensorMap] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a pointer: bytes from the beginning of an array."""

    array: NDArray[Any]
    offset: int
    memory: Memory | None


def target(value: Any, what: str) -> Target:
    """Read the value of ``pointers``; ``what`` names the pointer in messages."""
    offset: Any = 0
    if isinstance(value, tuple) and len(value) == 2:
        value, offset = value
    memory = value if isinstance(value, Memory) else None
    array = value.array if isinstance(value, Memory) else value
    if not isinstance(array, np.ndarray) or not isinstance(offset, (int, np.integer)):
        raise LaunchError(
            f"{what}: a pointer leads to an array or a Memory, or to a pair of it and an offset in"
            f" bytes, not to {value!r}"
        )
    if not 0 <= offset <= array.nbytes:
        raise LaunchError(
            f"{what}: offset {offset} is outside of the array it points into ({array.nbytes} bytes)"
        )
    return Target(array, int(offset), memory)


def targets(owner: Bytes | Memory, what: str) -> Iterator[tuple[int, Target]]:
    """The pointers of ``owner`` with their offsets."""
    for offset, value in owner.pointers.items():
        yield offset, target(value, f"{what}, pointer at {offset}")


def check_places(owner: Bytes | Memory, size: int, what: str) -> None:
    """Raise LaunchError for a pointer or map that is out of range, misaligned or on another."""
    spans = [(offset, POINTER_BYTES, "pointer") for offset in owner.pointers]
    spans += [(offset, MAP_BYTES, "tensor map") for offset in owner.maps]
    for offset, length, kind in spans:
        if not isinstance(offset, (int, np.integer)):
            raise LaunchError(f"{what}: the place of a {kind} is a number of bytes, not {offset!r}")
        if offset < 0 or offset + length > size:
            raise LaunchError(
                f"{what}: a {kind} of {length} bytes at {offset} does not fit into {size} bytes"
            )
        if length == MAP_BYTES and offset % MAP_ALIGN:
            raise LaunchError(
                f"{what}: a tensor map at {offset}; the offset is a multiple of {MAP_ALIGN}"
            )
    spans.sort()
    for (first, length, kind), (second, _, other) in pairwise(spans):
        if second < first + length:
            raise LaunchError(
                f"{what}: the {other} at {second} overlaps the {kind} at {first},"
                f" which has {length} bytes"
            )


def resolve(
    owner: Bytes | Memory, addresses: Mapping[int, int], what: str
) -> Iterator[tuple[int, bytes]]:
    """The words to write, by offset, from the address of each array (by ``id``)."""
    for offset, goal in targets(owner, what):
        address = addresses[id(goal.array)] + goal.offset
        yield offset, address.to_bytes(POINTER_BYTES, "little")
    for offset, tensor_map in owner.maps.items():
        yield offset, tensor_map.encode(addresses[id(tensor_map.array)])
