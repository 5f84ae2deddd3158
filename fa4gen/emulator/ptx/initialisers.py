"""Initial values of variables: ``= {1, {2, 3}, generic(x)}``."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from fa4gen.emulator.ptx import types
from fa4gen.emulator.ptx.constants import constant, integer
from fa4gen.emulator.ptx.tokens import Tokens, is_word

if TYPE_CHECKING:
    from collections.abc import Container

    from fa4gen.emulator.ptx.syntax import Immediate

_FORMATS: Final = {"f16": "<e", "f32": "<f", "f64": "<d"}


class _Pointer:
    """The address of a symbol plus a number of bytes."""

    def __init__(self, name: str, generic: bool, addend: int) -> None:
        self.name = name
        self.generic = generic
        self.addend = addend


_Value: TypeAlias = "Immediate | _Pointer | list[_Value]"


class Initialiser:
    """A parsed initial value, laid out once the dimensions are known."""

    def __init__(self, tokens: Tokens, symbols: Container[str]) -> None:
        self._tokens = tokens
        self._symbols = symbols
        self._relocations: list[tuple[int, str, bool]] = []
        self._value = self._read()

    def length(self) -> int:
        """The number of elements in the outermost braces."""
        return len(self._value) if isinstance(self._value, list) else 1

    def layout(
        self, element: str, dimensions: tuple[int, ...]
    ) -> tuple[bytes, tuple[tuple[int, str, bool], ...]]:
        """Return the bytes, zeros where nothing is given, and the addresses to add to them."""
        size = types.bits_of(element) // 8
        for extent in dimensions:
            size *= extent
        out = bytearray(size)
        self._fill(out, 0, size, self._value, element, dimensions)
        return bytes(out), tuple(self._relocations)

    def _read(self) -> _Value:
        tokens = self._tokens
        if not tokens.accept("{"):
            return self._scalar()
        items: list[_Value] = []
        if tokens.accept("}"):
            return items
        tokens.deeper()
        items.append(self._read())
        while tokens.accept(","):
            items.append(self._read())
        tokens.back()
        tokens.expect("}")
        return items

    def _scalar(self) -> Immediate | _Pointer:
        tokens = self._tokens
        if not is_word(tokens.peek()):
            return constant(tokens)
        generic = tokens.peek() == "generic" and tokens.peek(1) == "("
        if generic:
            tokens.next()
            tokens.expect("(")
        if tokens.peek() not in self._symbols:
            raise tokens.error(f"{tokens.peek()} is not declared")
        name = tokens.next()
        if generic:
            tokens.expect(")")
        return _Pointer(name, generic, integer(tokens) if tokens.peek() in ("+", "-") else 0)

    def _fill(
        self,
        out: bytearray,
        at: int,
        size: int,
        value: _Value,
        element: str,
        dimensions: tuple[int, ...],
    ) -> None:
        if not dimensions:
            if isinstance(value, list):
                raise self._tokens.error("an initialiser has more braces than dimensions")
            out[at : at + size] = self._bytes(value, element, at)
            return
        if not isinstance(value, list):
            raise self._tokens.error("an initialiser of an array must stand in braces")
        if len(value) > dimensions[0]:
            raise self._tokens.error(
                f"an initialiser has {len(value)} elements, expected at most {dimensions[0]}"
            )
        step = size // max(dimensions[0], 1)
        for index, item in enumerate(value):
            self._fill(out, at + index * step, step, item, element, dimensions[1:])

    def _bytes(self, value: Immediate | _Pointer, element: str, at: int) -> bytes:
        width = types.bits_of(element) // 8
        if isinstance(value, _Pointer):
            if width not in (4, 8):
                raise self._tokens.error(f"an address does not fit a .{element}")
            self._relocations.append((at, value.name, value.generic))
            return self._integer_bytes(value.addend, width)
        if value.kind == "int":
            if element in _FORMATS:
                return self._float_bytes(value.bits, element)
            return self._integer_bytes(value.bits, width)
        given = 4 if value.kind == "f32" else 8
        raw = value.bits.to_bytes(given, "little")
        if given == width:
            return raw
        if element not in _FORMATS:
            raise self._tokens.error(f"a floating constant cannot initialise a .{element}")
        number = struct.unpack("<f" if given == 4 else "<d", raw)[0]
        return self._float_bytes(number, element)

    def _float_bytes(self, number: float, element: str) -> bytes:
        try:
            return struct.pack(_FORMATS[element], number)
        except OverflowError:
            raise self._tokens.error(f"{number} does not fit a .{element}") from None

    @staticmethod
    def _integer_bytes(value: int, width: int) -> bytes:
        return (value & ((1 << 8 * width) - 1)).to_bytes(width, "little")
