"""Reads a cubin: its sections, and the code, registers and stack of its functions.

A cubin is a little-endian ELF64 file for machine 190. ``.nv.info`` holds attributes of functions by
symbol number, and ``.text.<function>`` the instructions.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property

_EM_CUDA = 190
_SHT_NOBITS = 8
_STT_FUNC = 2
_STO_ENTRY = 0x10
"""Bit of a symbol's ``st_other`` that marks a kernel, as opposed to a device function."""
_ATTRIBUTE_HAS_SIZE = 4
_REGISTER_COUNT = 0x2F
_FRAME_SIZE = 0x11


@dataclass(frozen=True)
class Section:
    """A section of the file."""

    name: str
    data: bytes
    size: int


@dataclass(frozen=True)
class Function:
    """A function of the cubin, with its registers and bytes of stack per thread."""

    name: str
    is_entry: bool
    registers: int
    frame_bytes: int
    code: bytes


@dataclass(frozen=True)
class Cubin:
    """The bytes of a cubin; ValueError or struct.error where they are none, or damaged."""

    data: bytes

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The sections in the file's order."""
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a little-endian ELF64 file")
        (machine,) = struct.unpack_from("<H", self.data, 18)
        if machine != _EM_CUDA:
            raise ValueError(f"ELF machine {machine}, not {_EM_CUDA} (CUDA)")
        (offset,) = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        rows = [struct.unpack_from("<IIQQQQ", self.data, offset + i * size) for i in range(count)]
        ends = [start + length for _, kind, *_, start, length in rows if kind != _SHT_NOBITS]
        if len(self.data) < max(ends, default=0):
            raise ValueError("cut short")
        table = self.data[rows[names][4] :]
        return tuple(
            Section(
                _text(table, name),
                b"" if kind == _SHT_NOBITS else self.data[start : start + length],
                length,
            )
            for name, kind, _, _, start, length in rows
        )

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The functions, kernels first, each group by name."""
        by_name = {section.name: section.data for section in self.sections}
        names = by_name.get(".strtab", b"")
        registers, frames = (self._attribute(kind) for kind in (_REGISTER_COUNT, _FRAME_SIZE))
        found = []
        for number, symbol in enumerate(struct.iter_unpack("<IBBHQQ", by_name.get(".symtab", b""))):
            name = _text(names, symbol[0])
            code = by_name.get(f".text.{name}")
            if symbol[1] & 0xF == _STT_FUNC and code is not None:
                is_entry = bool(symbol[2] & _STO_ENTRY)
                counts = registers.get(number, 0), frames.get(number, 0)
                found.append(Function(name, is_entry, *counts, code))
        return tuple(sorted(found, key=lambda one: (not one.is_entry, one.name)))

    def _attribute(self, wanted: int) -> dict[int, int]:
        """Return a 32-bit attribute of ``.nv.info`` by symbol number."""
        data = next((one.data for one in self.sections if one.name == ".nv.info"), b"")
        values: dict[int, int] = {}
        position = 0
        while position + 4 <= len(data):
            form, attribute, size = struct.unpack_from("<BBH", data, position)
            position += 4
            if form != _ATTRIBUTE_HAS_SIZE:  # the value is in the size field itself
                continue
            if attribute == wanted and size >= 8:
                symbol, value = struct.unpack_from("<II", data, position)
                values[symbol] = value
            position += size
        return values


def _text(table: bytes, start: int) -> str:
    return table[start : table.index(b"\0", start)].decode()
