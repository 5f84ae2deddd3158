"""Messages between the stand-in and the recorder: little-endian numbers, texts, bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

HEAD: Final = struct.Struct("<QI")
"""The head of a request: number of bytes after it, and the request's kind; of an answer: its
bytes."""
ANSWER_HEAD: Final = struct.Struct("<Q")


class Request(IntEnum):
    """A request of the stand-in; ``recorder.h`` has the same numbers."""

    HELLO = 1
    MODULE = 2
    PLACE = 3
    LAUNCH = 4
    ENCODE = 5
    NOTE = 6


class Result(IntEnum):
    """The results of the driver that the recorder returns."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    INVALID_IMAGE = 200
    NO_BINARY_FOR_GPU = 209
    INVALID_PTX = 218
    ILLEGAL_ADDRESS = 700
    LAUNCH_TIMEOUT = 702
    ILLEGAL_INSTRUCTION = 715
    MISALIGNED_ADDRESS = 716
    LAUNCH_FAILED = 719
    NOT_SUPPORTED = 801
    UNKNOWN = 999


@dataclass(slots=True)
class Reader:
    """Reads the fields of a request, one after the other."""

    data: bytes
    at: int = 0

    def numbers(self, count: int, kind: str = "I") -> tuple[int, ...]:
        """``count`` numbers of 32 bits, or of 64 with kind ``Q``."""
        layout = struct.Struct(f"<{count}{kind}")
        values = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return values

    def number(self, kind: str = "I") -> int:
        return self.numbers(1, kind)[0]

    def raw(self) -> bytes:
        """Bytes after their number."""
        size = self.number()
        found = self.data[self.at : self.at + size]
        self.at += size
        return found

    def text(self) -> str:
        return self.raw().decode()


def text(value: str) -> bytes:
    """A text after the number of its bytes."""
    raw = value.encode()
    return struct.pack("<I", len(raw)) + raw


def numbers(*values: int) -> bytes:
    """Numbers of 32 bits."""
    return struct.pack(f"<{len(values)}I", *(value & 0xFFFFFFFF for value in values))


def wide(*values: int) -> bytes:
    """Numbers of 64 bits."""
    return struct.pack(f"<{len(values)}Q", *values)
