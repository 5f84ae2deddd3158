"""Decodes ``.debug_line`` of a cubin: DWARF's line program with NVIDIA's record of inlined calls.

That record is the extended opcode 0x90: the number of the row that holds the call (from 1, 0 for
none), and the name of the function that was inlined, as an offset into ``.debug_str``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.toolchain.elf import NotACubinError

if TYPE_CHECKING:
    from fa4gen.toolchain.elf import Cubin

_END_SEQUENCE, _SET_ADDRESS, _INLINED_CALL = 1, 2, 0x90
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 1, 2, 3, 4
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9


@dataclass(frozen=True)
class Row:
    """From ``address`` on, instructions come from this line."""

    address: int
    file: str
    line: int
    caller: int
    """Number, from 1, of the row of the call that was inlined here; 0 for none."""
    function: str
    """Mangled name of the inlined function; "" for none."""


def read_line_table(cubin: Cubin) -> dict[str, tuple[Row, ...]]:
    """Return the rows of each function's code; empty without line information.

    NotACubinError for a table that does not decode.
    """
    section, strings = cubin.section(".debug_line"), cubin.section(".debug_str")
    if section is None:
        return {}
    try:
        program = _LineProgram(section.data, strings.data if strings else b"\0")
        return program.run(cubin.relocated_symbols(".debug_line"))
    except (IndexError, ValueError, struct.error) as error:
        raise NotACubinError(f"damaged line table: {error}") from error


class _LineProgram:
    def __init__(self, data: bytes, strings: bytes) -> None:
        self._data = data
        self._strings = strings
        self._position = 0

    def run(self, symbols: dict[int, str]) -> dict[str, tuple[Row, ...]]:
        """Return the rows by function; ``symbols`` has the names of symbols by their offsets."""
        tables: dict[str, tuple[Row, ...]] = {}
        while self._position < len(self._data):
            self._read_header()
            while self._position < self._end:
                function, rows = self._sequence(symbols)
                if function:
                    tables[function] = rows
        return tables

    def _read_header(self) -> None:
        start = self._position
        length, version, header = struct.unpack_from("<IHI", self._data, start)
        if not 2 <= version <= 4:
            raise ValueError(f"version {version}")
        self._end = start + 4 + length
        fields = start + 10
        instruction = struct.unpack_from("<B", self._data, fields)[0]
        fields += 2 if version >= 4 else 1  # version 4 has one field more
        _, self._line_base, self._line_range, self._opcode_base = struct.unpack_from(
            "<BbBB", self._data, fields
        )
        if not self._line_range or not self._opcode_base:
            raise ValueError(f"line range {self._line_range}, opcode base {self._opcode_base}")
        self._instruction = instruction
        self._position = fields + 4
        self._operands = self._data[self._position : self._position + self._opcode_base - 1]
        self._position += self._opcode_base - 1
        while self._text():
            pass  # folders
        self._files = [""]
        while name := self._text():
            self._files.append(name)
            for _ in range(3):  # folder, time, size
                self._unsigned()
        self._position = start + 10 + header

    def _sequence(self, symbols: dict[int, str]) -> tuple[str, tuple[Row, ...]]:
        rows: list[Row] = []
        function, inlined = "", ""
        address, file, line, caller = 0, 1, 1, 0
        while self._position < self._end:
            opcode = self._data[self._position]
            self._position += 1
            if opcode >= self._opcode_base:
                steps, lines = divmod(opcode - self._opcode_base, self._line_range)
                address += steps * self._instruction
                line += lines + self._line_base
                rows.append(Row(address, self._files[file], line, caller, inlined))
            elif opcode == 0:
                length = self._unsigned()
                end = self._position + length
                kind = self._data[self._position]
                self._position += 1
                if kind == _END_SEQUENCE:
                    self._position = end
                    return function, tuple(rows)
                if kind == _SET_ADDRESS:
                    function = symbols.get(self._position, function)
                    address = int.from_bytes(self._data[self._position : end], "little")
                elif kind == _INLINED_CALL:
                    caller = self._unsigned()
                    name = self._unsigned()
                    inlined = self._string(name) if caller else ""
                self._position = end
            elif opcode == _COPY:
                rows.append(Row(address, self._files[file], line, caller, inlined))
            elif opcode == _ADVANCE_PC:
                address += self._unsigned() * self._instruction
            elif opcode == _ADVANCE_LINE:
                line += self._signed()
            elif opcode == _SET_FILE:
                file = self._unsigned()
            elif opcode == _CONST_ADD_PC:
                address += (255 - self._opcode_base) // self._line_range * self._instruction
            elif opcode == _FIXED_ADVANCE_PC:
                address += struct.unpack_from("<H", self._data, self._position)[0]
                self._position += 2
            else:
                for _ in range(self._operands[opcode - 1]):
                    self._unsigned()
        return function, tuple(rows)

    def _text(self) -> str:
        end = self._data.index(b"\0", self._position)
        text = self._data[self._position : end].decode()
        self._position = end + 1
        return text

    def _string(self, start: int) -> str:
        return self._strings[start : self._strings.index(b"\0", start)].decode()

    def _unsigned(self) -> int:
        return self._leb()[0]

    def _signed(self) -> int:
        value, bits = self._leb()
        return value - (1 << bits) if value >> (bits - 1) else value

    def _leb(self) -> tuple[int, int]:
        value = bits = 0
        while True:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << bits
            bits += 7
            if byte < 0x80:
                return value, bits
