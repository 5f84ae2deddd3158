"""Shared-memory matrix descriptors of wgmma and tcgen05 (PTX ISA, "matrix descriptor")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_SPANS_90: Final = {0: (0, 16), 1: (128, 16), 2: (64, 16), 3: (32, 16)}
_SPANS_100: Final = {0: (0, 16), 1: (128, 32), 2: (128, 16), 4: (64, 16), 6: (32, 16)}


class DescriptorError(ValueError):
    """Bits that mean nothing, or nothing that the hardware does."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A decoded descriptor; all fields in bytes, ``base_offset`` in 128-byte lines.

    ``span`` is the swizzle's width (0 without), ``atom`` the bytes that it keeps together.
    """

    address: int
    leading: int
    stride: int
    base_offset: int
    span: int
    atom: int


@lru_cache(maxsize=4096)
def decode(bits: int, sm: int) -> Descriptor:
    """Decode 64 bits for sm 90 or for sm 100 and later; raises DescriptorError."""

    def field(low: int, count: int) -> int:
        return bits >> low & (1 << count) - 1

    if sm < 100:
        if field(14, 2) or field(30, 2) or field(46, 3) or field(52, 10):
            raise DescriptorError(f"descriptor {bits:#018x} has reserved bits set")
        span, atom = _SPANS_90[field(62, 2)]
    else:
        if field(14, 2) or field(30, 2) or field(53, 8):
            raise DescriptorError(f"descriptor {bits:#018x} has reserved bits set")
        if field(46, 3) != 1:
            raise DescriptorError(
                f"descriptor {bits:#018x}: bits 46-48 are {field(46, 3)}, they have to be 1"
            )
        if field(52, 1):
            raise DescriptorError(
                f"descriptor {bits:#018x}: absolute leading dimension addresses are not modelled"
            )
        code = field(61, 3)
        if code not in _SPANS_100:
            raise DescriptorError(f"descriptor {bits:#018x}: {code} is no swizzle mode")
        span, atom = _SPANS_100[code]
    return Descriptor(
        field(0, 14) << 4, field(16, 14) << 4, field(32, 14) << 4, field(49, 3), span, atom
    )
