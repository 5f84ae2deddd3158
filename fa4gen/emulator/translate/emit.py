"""From instructions to Python source: the one door through which instruction families speak.

A family translates an instruction in one of two ways:

* it emits NumPy statements over the register rows (``ufunc``, ``assign``, ``line``), or
* it hands over a handler, ``call(handler)``, which the generated code calls as
  ``handler(wg, mask)``; its operands are read and written through ``reader`` and ``writer``.

Every instruction is translated twice: once for "all lanes that are alive take part", where rows are
written whole, and once under a mask. Handlers get the mask of the lanes that take part either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from fa4gen.emulator.errors import UnsupportedError
from fa4gen.emulator.ptx.scopes import MODELLED, VECTORS
from fa4gen.emulator.ptx.syntax import (
    Address,
    Immediate,
    Instruction,
    NotPredicate,
    Operand,
    Register,
    Sink,
    Special,
    Symbol,
)
from fa4gen.emulator.ptx.types import CLASS_BITS, bits_of, dtype_of, is_float, view_of
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.registers import Mask

if TYPE_CHECKING:
    from fa4gen.emulator.state.layout import Layout

Handler: TypeAlias = Callable[[Warpgroup, Mask], None]
Reader: TypeAlias = Callable[[Warpgroup], Any]
Writer: TypeAlias = Callable[[Warpgroup, Any, Mask], None]

_UNIFORM_CLOCKS = (
    "%clock",
    "%clock64",
    "%clock_hi",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
)

_WIDE: Final = {"h": "U16", "r": "U32", "d": "U64"}
_LOW_HALF: Final = np.uint64(0xFFFF_FFFF)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """``destination = function(*operands)``, lane by lane and register by register.

    ``function`` takes rows of any length; with ``into`` its last argument is the row to write, or
    None to return a new one.
    """

    function: Callable[..., Any]
    kind: str
    destination: Operand
    operands: tuple[Operand, ...]
    kinds: tuple[str, ...]
    into: bool


class Emitter:
    """Collects the statements of one straight run of instructions, and the objects they use."""

    def __init__(self, layout: Layout, masked: bool, namespace: dict[str, Any]) -> None:
        self.layout = layout
        self.masked = masked
        self.namespace = namespace
        self.views: set[str] = set()
        self.lines: list[str] = []
        self.indent = "    "
        self.mask = "m"
        self.instruction: Instruction | None = None
        # the code translated before it in the run, arithmetic on registers left out
        self.previous: Instruction | None = None
        self.record: list[Elementwise] | None = None

    # ---- statements

    def elementwise(
        self,
        function: Callable[..., Any],
        kind: str,
        destination: Operand,
        operands: Iterable[Operand],
        kinds: Iterable[str],
        into: bool,
    ) -> bool:
        """Offer an operation for a batch; True if it was only recorded and nothing is emitted."""
        if self.record is None:
            return False
        operation = Elementwise(function, kind, destination, tuple(operands), tuple(kinds), into)
        self.record.append(operation)
        return True

    def line(self, text: str) -> None:
        """Append one statement."""
        self.lines.append(self.indent + text)

    def ufunc(self, function: str | Any, kind: str, destination: Operand, *arguments: str) -> None:
        """``destination = function(*arguments)``; a NumPy ufunc (or its name) with out and where.

        ``kind`` is the PTX type of the destination; the arguments are expressions from ``get``.
        """
        if isinstance(destination, Sink):
            return
        name = function if isinstance(function, str) else self.name(function)
        if isinstance(function, str):
            self.namespace.setdefault(function, getattr(np, function))
        target = self.target(destination, kind)
        where = f", where={self.mask}" if self.masked else ""
        self.line(f"{name}({', '.join(arguments)}, out={target}{where})")

    def assign(self, kind: str, destination: Operand, expression: str) -> None:
        """``destination = expression``, cast unsafely (C-like) to the type if it differs."""
        if isinstance(destination, Sink):
            return
        target = self.target(destination, kind)
        if self.masked:
            self.namespace.setdefault("copyto", np.copyto)
            self.line(f"copyto({target}, {expression}, 'unsafe', {self.mask})")
        else:
            self.line(f"{target}[...] = {expression}")

    def call(self, handler: Handler) -> None:
        """Call ``handler(wg, mask)`` at this point."""
        self.line(f"{self.name(handler)}(g, {self.mask})")

    # ---- operands in emitted statements

    def get(self, operand: Operand, kind: str) -> str:
        """An expression for the operand's value as ``kind``: a row of lanes or a NumPy scalar.

        The value of a wider register is its low bits; a narrower register is refused.
        """
        if isinstance(operand, NotPredicate):
            return f"~{self._view('P')}[{operand.register.index}]"
        if isinstance(operand, Register):
            return self._register(operand, kind)
        if isinstance(operand, Special) and operand.name in _UNIFORM_CLOCKS:
            return f"g.machine.clock({operand.name!r})"
        if isinstance(operand, Special):
            self._modelled(operand)
            text = f"g.special[{operand.name!r}]"
            return text if kind in ("u32", "b32") else f"{text}.astype({self._dtype(kind)})"
        if isinstance(operand, Symbol) and operand.variable.space == "shared":
            # a CTA of a cluster sees its own shared memory under its rank
            constant = self.name(self.constant(operand, kind))
            return f"(g.cta.shared_base.astype({self._dtype(kind)}) + {constant})"
        return self.name(self.constant(operand, kind))

    def target(self, destination: Operand, kind: str) -> str:
        """An expression for the row that ``destination`` names; of exactly the type's width."""
        if not isinstance(destination, Register):
            raise self.refuse("the destination is not a register")
        if kind != "pred" and CLASS_BITS[destination.cls] != max(16, bits_of(kind)):
            raise self.refuse(f"{destination.name} is not as wide as .{kind}")
        if kind == "pred" and destination.cls != "p":
            raise self.refuse(f"{destination.name} is not a predicate")
        view = view_of(kind)
        view = {"U8": "U16", "S8": "S16"}.get(view, view)
        return f"{self._view(view)}[{destination.index}]"

    def constant(self, operand: Operand, kind: str) -> Any:
        """The NumPy scalar of a literal or of a variable's address."""
        dtype = dtype_of(kind)
        if isinstance(operand, Symbol):
            return dtype(self.layout.address(operand.variable) + operand.offset)
        if not isinstance(operand, Immediate):
            kind_of = type(operand).__name__.lower()
            raise self.refuse(f"a register or a constant was expected, not this {kind_of}")
        if kind == "pred":
            return np.bool_(operand.bits != 0)
        if operand.kind == "int":
            if is_float(kind) and not kind.endswith("x2"):
                return dtype(operand.bits)
            width = bits_of(kind)
            raw = operand.bits & ((1 << width) - 1)
            return np.array(raw, dtype=f"u{width // 8}").view(dtype)[()]
        source = (
            np.uint32(operand.bits).view(np.float32)
            if operand.kind == "f32"
            else (np.uint64(operand.bits).view(np.float64))
        )
        if is_float(kind) and not kind.endswith("x2"):
            return source.astype(dtype)
        # a float literal moved as bits
        if bits_of(kind) == 32:
            return np.float32(source).view(np.uint32).astype(dtype)
        return np.float64(source).view(np.uint64).astype(dtype)

    # ---- operands in handlers

    def reader(self, operand: Operand, kind: str) -> Reader:
        """A function of the warpgroup that returns the value of ``get``."""
        if isinstance(operand, NotPredicate):
            negated = operand.register.index
            return lambda wg: ~wg.P[negated]
        if isinstance(operand, Register):
            index = operand.index
            width = CLASS_BITS[operand.cls]
            if (kind == "pred") != (operand.cls == "p"):
                raise self.refuse(f"{operand.name} is read as .{kind}")
            if kind == "pred" or (width == max(16, bits_of(kind)) and bits_of(kind) != 8):
                view = view_of(kind)
                return lambda wg: getattr(wg, view)[index]
            if bits_of(kind) > width:
                raise self.refuse(f"{operand.name} is narrower than .{kind}")
            wide = self._wide(operand)
            unsigned = np.dtype(f"u{bits_of(kind) // 8}")
            dtype = dtype_of(kind)
            return lambda wg: getattr(wg, wide)[index].astype(unsigned).view(dtype)
        if isinstance(operand, Special) and operand.name in _UNIFORM_CLOCKS:
            clock, count = operand.name, dtype_of(kind)
            return lambda wg: wg.machine.clock(clock).astype(count)
        if isinstance(operand, Special):
            self._modelled(operand)
            name = operand.name
            dtype = dtype_of(kind)
            return lambda wg: wg.special[name].astype(dtype)
        value = self.constant(operand, kind)
        if isinstance(operand, Symbol) and operand.variable.space == "shared":
            return lambda wg: wg.cta.shared_base.astype(value.dtype) + value
        return lambda wg: value

    def writer(self, operand: Operand, kind: str) -> Writer:
        """A function (wg, values, mask) that writes a row, or a scalar to every lane.

        ``values`` has one entry per lane, of the mask or not. A destination wider
        than the type gets it sign- or zero-extended.
        """
        if isinstance(operand, Sink):
            return lambda wg, values, mask: None
        if not isinstance(operand, Register):
            raise self.refuse("the destination is not a register")
        if (kind == "pred") != (operand.cls == "p"):
            raise self.refuse(f"{operand.name} is written as .{kind}")
        index = operand.index
        width = CLASS_BITS[operand.cls]
        view = view_of(kind)
        if kind not in ("pred", "b128") and width != bits_of(kind):
            if width < bits_of(kind):
                raise self.refuse(f"{operand.name} is narrower than .{kind}")
            self._wide(operand)
            if is_float(kind):
                kind = f"b{bits_of(kind)}"
            view = ("S" if kind[0] == "s" else "U") + str(width)
        dtype = dtype_of(kind)

        def write(wg: Warpgroup, values: Any, mask: Mask) -> None:
            row = getattr(wg, view)[index]
            values = np.asarray(values)
            if values.dtype != dtype and kind != "b128":
                values = (
                    values.view(dtype)
                    if values.dtype.itemsize == np.dtype(dtype).itemsize and kind != "pred"
                    else values.astype(dtype)
                )
            if mask is None:
                row[...] = values
            else:
                row[mask] = values[mask] if values.ndim else values

        return write

    def address(self, operand: Operand, kind: str = "u64", *, shared: bool = False) -> Reader:
        """A function of a warpgroup that returns the addresses (per lane, or one) of ``[...]``.

        ``kind`` is u64, or u32 where the base is a 32-bit address; sums wrap like the hardware's.
        ``shared``: the instruction names a shared state space. Of a 64-bit register ptxas takes the
        lower half then, which of a generic address in the shared window is the shared address.
        The result is always uint64 (zero-extended).
        """
        if not isinstance(operand, Address):
            raise self.refuse("an address in brackets was expected")
        base = operand.base
        if isinstance(base, Register):
            kind = "u32" if base.cls == "r" else "u64"
            index, view = base.index, view_of(kind)
            offset = dtype_of(kind)(operand.offset % (1 << bits_of(kind)))
            if shared and kind == "u64":
                return lambda wg: (wg.U64[index] + offset) & _LOW_HALF
            if operand.offset == 0:
                return lambda wg: getattr(wg, view)[index].astype(np.uint64)
            return lambda wg: (getattr(wg, view)[index] + offset).astype(np.uint64)
        if isinstance(base, Symbol):
            value = np.uint64(self.layout.address(base.variable) + base.offset + operand.offset)
            if base.variable.space == "shared":
                return lambda wg: wg.cta.shared_base.astype(np.uint64) + value
        else:
            value = np.uint64((base.bits + operand.offset) % (1 << (32 if shared else 64)))
        return lambda wg: value

    # ---- the rest

    def name(self, thing: Any) -> str:
        """A name under which generated code finds ``thing``."""
        name = f"k{len(self.namespace)}"
        self.namespace[name] = thing
        return name

    def refuse(self, reason: str) -> UnsupportedError:
        """The error to raise for a form of the current instruction that is not modelled."""
        assert self.instruction is not None
        return UnsupportedError(self.instruction, reason)

    def _view(self, view: str) -> str:
        self.views.add(view)
        return view

    def _wide(self, register: Register) -> str:
        """The view that reads all of a register, to take its low bits."""
        if register.cls not in _WIDE:
            raise self.refuse(f"{register.name} has 128 bits")
        return _WIDE[register.cls]

    def _modelled(self, special: Special) -> None:
        if special.name not in MODELLED:
            name = special.name.partition(".")[0]
            component = f"; it has {name}.x, {name}.y and {name}.z" if name in VECTORS else ""
            raise self.refuse(f"{special.name} has no value here{component}")

    def _dtype(self, kind: str) -> str:
        return self.name(dtype_of(kind))

    def _register(self, register: Register, kind: str) -> str:
        if (kind == "pred") != (register.cls == "p"):
            raise self.refuse(f"{register.name} is read as .{kind}")
        width = CLASS_BITS[register.cls]
        if kind == "pred" or width == bits_of(kind):
            return f"{self._view(view_of(kind))}[{register.index}]"
        if width < bits_of(kind):
            raise self.refuse(f"{register.name} is narrower than .{kind}")
        wide = self._wide(register)
        unsigned = self.name(np.dtype(f"u{bits_of(kind) // 8}"))
        text = f"{self._view(wide)}[{register.index}].astype({unsigned})"
        return text if kind[0] in "ub" and kind != "bf16" else f"{text}.view({self._dtype(kind)})"
