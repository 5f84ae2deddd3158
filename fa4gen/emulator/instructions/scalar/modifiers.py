"""The common part of the scalar families: decoding an instruction's modifiers, emitting results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any, Final

import numpy as np

from fa4gen.emulator.ptx.syntax import Instruction, Operand, Register, Sink
from fa4gen.emulator.ptx.types import CLASS_BITS
from fa4gen.emulator.translate.emit import Emitter

INTEGERS: Final = ("u16", "s16", "u32", "s32", "u64", "s64")
ROUNDINGS: Final = ("rn", "rz", "rm", "rp")


class Words:
    """The modifiers of an instruction, taken one by one; those that are left are refused."""

    def __init__(self, i: Instruction, e: Emitter) -> None:
        self._rest = list(i.modifiers)
        self._emitter = e
        self._operands = len(i.operands)

    def one(self, *options: str) -> str | None:
        """Take the first modifier that is one of ``options``, if there is one."""
        for word in self._rest:
            if word in options:
                self._rest.remove(word)
                return word
        return None

    def has(self, word: str) -> bool:
        """Take a modifier; whether it was there."""
        return self.one(word) is not None

    def kind(self, *options: str) -> str:
        """Take the next type, which has to be one of ``options``."""
        found = self.one(*options)
        if found is None:
            raise self._emitter.refuse(f"one of .{', .'.join(options)} was expected")
        return found

    def end(self, *operands: int) -> None:
        """Refuse modifiers that are left, and any other number of operands."""
        if self._rest:
            raise self._emitter.refuse(f".{self._rest[0]}")
        if self._operands not in operands:
            raise self._emitter.refuse(f"it has {self._operands} operands")


def keys(opcode: str, *groups: Iterable[str]) -> list[str]:
    """All forms of an opcode with one word (or none: "") of each group."""
    return [".".join([opcode, *filter(None, words)]) for words in product(*groups)]


def arguments(e: Emitter, operands: Iterable[Operand], kinds: Iterable[str]) -> list[str]:
    """Expressions for operands, at least one of them a row.

    Where no operand is a register, all could be scalars; they are made rows of one element.
    """
    operands = list(operands)
    texts = [e.get(operand, kind) for operand, kind in zip(operands, kinds, strict=True)]
    if any(isinstance(operand, Register) for operand in operands):
        return texts
    row = e.name(np.atleast_1d)
    return [f"{row}({text})" for text in texts]


def compute(
    e: Emitter,
    function: Callable[..., Any],
    kind: str,
    destination: Operand,
    operands: Iterable[Operand],
    kinds: Iterable[str],
) -> None:
    """``destination = function(*operands)``, each operand read as its kind."""
    if isinstance(destination, Sink):
        return
    operands, kinds = tuple(operands), tuple(kinds)
    if e.elementwise(function, kind, destination, operands, kinds, into=False):
        return
    texts = arguments(e, operands, kinds)
    e.assign(kind, destination, f"{e.name(function)}({', '.join(texts)})")


def compute_into(
    e: Emitter,
    function: Callable[..., Any],
    kind: str,
    destination: Operand,
    operands: Iterable[Operand],
    kinds: Iterable[str],
) -> None:
    """Like ``compute``, for a function that takes the row to write as its last argument, or None.

    It saves a copy where all lanes take part. Such a function may read an operand only before it
    writes, since the row may be that of an operand.
    """
    if isinstance(destination, Sink):
        return
    operands, kinds = tuple(operands), tuple(kinds)
    if e.elementwise(function, kind, destination, operands, kinds, into=True):
        return
    texts = ", ".join(arguments(e, operands, kinds))
    name = e.name(function)
    if e.masked:
        e.assign(kind, destination, f"{name}({texts}, None)")
    else:
        e.line(f"{name}({texts}, {e.target(destination, kind)})")


def widened(destination: Operand, kind: str) -> str:
    """The type as wide as the destination register that extends an integer of ``kind``."""
    if isinstance(destination, Register) and destination.cls in "hrd":
        return ("s" if kind[0] == "s" else "u") + str(CLASS_BITS[destination.cls])
    return kind
