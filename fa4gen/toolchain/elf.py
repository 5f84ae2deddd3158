"""Reads a cubin's own data: its kernels, their registers, stack and shared memory.

A cubin is a little-endian ELF64 file for machine 190. ``.nv.info`` holds attributes of functions
by symbol number, ``.nv.shared.<kernel>`` has the size of the kernel's static shared memory, and
``.text.<kernel>`` its instructions.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_EM_CUDA = 190
_SHT_NOBITS = 8
_STT_FUNC = 2
_STO_ENTRY = 0x10
"""Bit of a symbol's ``st_other`` that marks a kernel, as opposed to a device function."""
_ATTRIBUTE_HAS_SIZE = 4
_REGISTER_COUNT = 0x2F
_FRAME_SIZE = 0x11
_RESERVED_SHARED = 1024
"""Bytes per CTA that the system keeps on sm_90 and later; a kernel's section begins with them."""


_HEADER_BYTES = 64


class NotACubinError(ValueError):
    """The bytes are not an intact cubin."""


def elf_size(data: bytes) -> int:
    """Return the size in bytes of the ELF file ``data`` according to its headers."""
    if len(data) < _HEADER_BYTES:
        return _HEADER_BYTES
    segments, sections = struct.unpack_from("<QQ", data, 32)
    segment_size, num_segments, section_size, num_sections = struct.unpack_from("<HHHH", data, 54)
    ends = [segments + segment_size * num_segments, sections + section_size * num_sections]
    for i in range(num_sections):
        start = sections + i * section_size
        if start + section_size > len(data):
            break
        kind = struct.unpack_from("<I", data, start + 4)[0]
        offset, size = struct.unpack_from("<QQ", data, start + 24)
        if kind != _SHT_NOBITS:
            ends.append(offset + size)
    return int(max(ends))


@dataclass(frozen=True)
class Section:
    """A section of the file."""

    name: str
    kind: int
    data: bytes
    size: int
    info: int
    link: int


@dataclass(frozen=True)
class Function:
    """A function of the cubin. Bytes are per thread, except for shared memory, which is per CTA."""

    name: str
    is_entry: bool
    registers: int
    frame_bytes: int
    static_shared_bytes: int
    """Declared with a fixed size; without the system's 1024 bytes."""
    code: bytes


class Cubin:
    """A parsed cubin: its ``sections``, and its ``functions`` with the kernels first.

    NotACubinError for anything else, or a damaged one.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        try:
            self.sections = self._read_sections()
            self._symbols = self._read_symbols()
            self.functions = self._read_functions()
        except NotACubinError:
            raise
        except (struct.error, IndexError, ValueError, OverflowError) as error:
            raise NotACubinError(f"damaged cubin: {error}") from error

    def _read_sections(self) -> tuple[Section, ...]:
        data = self._data
        if data[:4] != b"\x7fELF" or data[4:6] != b"\x02\x01":
            raise NotACubinError("not a little-endian ELF64 file")
        (machine,) = struct.unpack_from("<H", data, 18)
        if machine != _EM_CUDA:
            raise NotACubinError(f"ELF machine {machine}, not {_EM_CUDA} (CUDA)")
        (offset,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        raw = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
        if len(data) < elf_size(data):
            raise NotACubinError("cut short")
        table = data[raw[names][4] : raw[names][4] + raw[names][5]]
        sections = []
        for name, kind, _, _, start, length, link, info, _, _ in raw:
            body = b"" if kind == _SHT_NOBITS else data[start : start + length]
            sections.append(Section(_text(table, name), kind, body, length, info, link))
        return tuple(sections)

    def section(self, name: str) -> Section | None:
        """Return the section called ``name``, None when there is none."""
        return next((section for section in self.sections if section.name == name), None)

    def relocated_symbols(self, name: str) -> dict[int, str]:
        """Return the symbols with addresses written into section ``name``, by offset."""
        section = self.section(f".rela{name}")
        try:
            entries = list(struct.iter_unpack("<QQq", section.data)) if section else []
            return {offset: self._symbols[info >> 32][0] for offset, info, _ in entries}
        except (struct.error, IndexError) as error:
            raise NotACubinError(f"damaged relocations: {error}") from error

    def _read_symbols(self) -> list[tuple[str, int, int]]:
        """(name, type, other) by symbol number."""
        table, names = self.section(".symtab"), self.section(".strtab")
        if table is None or names is None:
            return []
        return [
            (_text(names.data, name), info & 0xF, other)
            for name, info, other, _, _, _ in struct.iter_unpack("<IBBHQQ", table.data)
        ]

    def _read_functions(self) -> tuple[Function, ...]:
        """Return the cubin's functions, kernels first, each group by name."""
        registers = self._attribute(_REGISTER_COUNT)
        frames = self._attribute(_FRAME_SIZE)
        found = []
        for number, (name, kind, other) in enumerate(self._symbols):
            text = self.section(f".text.{name}")
            if kind != _STT_FUNC or text is None:
                continue
            shared = self.section(f".nv.shared.{name}")
            found.append(
                Function(
                    name=name,
                    is_entry=bool(other & _STO_ENTRY),
                    registers=registers.get(number, 0),
                    frame_bytes=frames.get(number, 0),
                    static_shared_bytes=max(0, shared.size - _RESERVED_SHARED) if shared else 0,
                    code=text.data,
                )
            )
        return tuple(sorted(found, key=lambda f: (not f.is_entry, f.name)))

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels."""
        return tuple(function for function in self.functions if function.is_entry)

    def _attribute(self, wanted: int) -> dict[int, int]:
        """Return a 32-bit attribute of ``.nv.info`` by symbol number."""
        section = self.section(".nv.info")
        values: dict[int, int] = {}
        data = section.data if section else b""
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
