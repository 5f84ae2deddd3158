"""The records of the stand-in, read from the lines of words that it writes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Launch:
    """A call of cuLaunchKernelEx. ``order`` counts records of all kinds."""

    order: int
    entry: str
    device: int
    stream: int
    grid: _Shape
    block: _Shape
    dynamic_shared: int
    attributes: tuple[tuple[int, bytes], ...]
    """CUlaunchAttributeID, and the 64 bytes of its value."""
    parameters: tuple[bytes, ...]
    """The bytes of each, as many as the cubin says that it has."""


@dataclass(frozen=True)
class TensorMapCall:
    """A call of cuTensorMapEncodeTiled."""

    order: int
    pointer: int
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


def read_records(lines: str) -> Iterator[object]:
    """Yield the records of the lines; images are copied from this process's memory."""
    for order, line in enumerate(lines.splitlines()):
        kind, *words = line.split()
        match kind:
            case "launch":
                yield _launch(order, words)
            case "map":
                pointer, result, encoded = words
                yield TensorMapCall(order, int(pointer), int(result), bytes.fromhex(encoded))
            case "memset":
                yield Memset(order, *map(int, words))
            case "image":
                yield Image(order, ctypes.string_at(*map(int, words)))
            case "setting":
                entry, *numbers = words
                yield Setting(order, entry, *map(int, numbers))
            case _:
                raise ValueError(f"a record of what is unknown: {line}")


def _launch(order: int, words: list[str]) -> Launch:
    stream, entry = int(words[0]), words[1]
    device, *shape, shared, count = map(int, words[2:11])
    attributes, parameters = words[11 : 11 + 2 * count], words[11 + 2 * count :]
    return Launch(
        order,
        entry,
        device,
        stream,
        (shape[0], shape[1], shape[2]),
        (shape[3], shape[4], shape[5]),
        shared,
        tuple(
            (int(number), bytes.fromhex(value))
            for number, value in zip(attributes[::2], attributes[1::2], strict=True)
        ),
        tuple(bytes.fromhex(word.strip("-")) for word in parameters),
    )
