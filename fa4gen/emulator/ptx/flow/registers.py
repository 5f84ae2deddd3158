"""The registers that an entry's instructions read and write, and each instruction's successors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.ptx.syntax import Address, Label, LabelTable, Pair, Register, Vector

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Function, Instruction, Operand

# Opcodes whose first operand is read although it is a plain register.
_NO_RESULT: Final = frozenset(("bar", "barrier", "brx", "nanosleep", "setmaxnreg"))
_ENDS: Final = frozenset(("ret", "exit", "trap"))

NO_REGISTERS: Final[frozenset[int]] = frozenset()


def registers_of(operand: Operand) -> Iterator[int]:
    """The 32- and 64-bit registers that an operand names, as numbers: even ones have 32 bits."""
    if isinstance(operand, Register):
        if operand.cls in ("r", "d"):
            yield operand.index << 1 | (operand.cls == "d")
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from registers_of(item)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)
    elif isinstance(operand, Address):
        yield from registers_of(operand.base)
        if operand.coordinates is not None:
            yield from registers_of(operand.coordinates)


class RegisterFlow:
    """``reads``, ``writes`` and ``successors`` of every instruction of an entry, by index.

    Guards are predicates and not counted. A product's accumulators count as written and read.
    """

    def __init__(self, function: Function) -> None:
        self.code = function.instructions
        self.reads: list[frozenset[int]] = []
        self.writes: list[frozenset[int]] = []
        self.successors: list[tuple[int, ...]] = []
        for index, one in enumerate(self.code):
            written, read = _split(one)
            self.writes.append(written)
            self.reads.append(read)
            self.successors.append(self._behind(index))

    def _behind(self, index: int) -> tuple[int, ...]:
        one = self.code[index]
        following = (index + 1,) if index + 1 < len(self.code) else ()
        if one.opcode in _ENDS:
            return following if one.guard is not None else ()
        targets: tuple[int, ...] = ()
        for operand in one.operands:
            if isinstance(operand, Label):
                targets = (operand.target,)
            elif isinstance(operand, LabelTable):
                targets = operand.targets
        if not targets:
            return following
        taken = tuple(target for target in targets if target < len(self.code))
        return taken + following if one.guard is not None else taken


def _split(one: Instruction) -> tuple[frozenset[int], frozenset[int]]:
    if not one.operands:
        return NO_REGISTERS, NO_REGISTERS
    first, *others = one.operands
    read = frozenset(register for operand in others for register in registers_of(operand))
    named = frozenset(registers_of(first))
    if isinstance(first, Address) or one.opcode in _NO_RESULT:
        return NO_REGISTERS, read | named
    if one.opcode == "wgmma":
        return named, read | named
    return named, read
