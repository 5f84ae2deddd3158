"""Choices between two sizes: integer ``min`` and ``max``, and ``selp`` of integers.

``min(group_rows, row_tiles - first_row)`` is a branch that a compiler made an instruction, and a
case in which it always gives the same of its two values says nothing about the other. A ``selp`` is
left out where it moves data (its result is shuffled, stored to global memory or a float), and where
it makes a number of a condition (1 or 0), on which some branch or size depends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fa4gen.emulator.ptx.syntax import Address, Immediate, Instruction
from fa4gen.emulator.state.tally import BOTH
from fa4gen.emulator.translate.batches import registers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fa4gen.emulator.state.machine import Warpgroup
    from fa4gen.emulator.state.registers import Mask
    from fa4gen.emulator.translate.batches import Name
    from fa4gen.emulator.translate.emit import Emitter, Handler

_COMPARED: Final = (("s32",), ("u32",), ("s64",), ("u64",))
_SELECTED: Final = (*_COMPARED, ("b32",), ("b64",))
_FLOATS: Final = frozenset(("f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f32x2", "f64"))
# Opcodes that data go through, or end in.
_CARRIES: Final = ("mov", "selp")
_DATA: Final = ("shfl", "st.global", "st.async", "mma", "stmatrix", "tcgen05.st")


def find_choices(instructions: Sequence[Instruction]) -> frozenset[int]:
    """The indices of instructions that choose between two sizes."""
    data: dict[Name, bool] = {}
    found = set[int]()
    # nearly every use follows its definition: from the last one up, uses come first
    for index in reversed(range(len(instructions))):
        one = instructions[index]
        if _compares(one) or (
            _selects(one) and not any(data.get(name) for name in registers_of(one.operands[0]))
        ):
            found.add(index)
        _note_uses(one, data)
    return frozenset(found)


def note_choice(index: int, instruction: Instruction, e: Emitter) -> Handler:
    """Return the code that counts, for each value of a choice, the lanes that get it."""
    kind = instruction.modifiers[0]
    _, a, b, *condition = instruction.operands
    rows: Callable[[Warpgroup], tuple[Any, Any]]
    if condition:
        chooses = e.reader(condition[0], "pred")

        def rows(wg: Warpgroup) -> tuple[Any, Any]:
            first = np.broadcast_to(chooses(wg), wg.lanes)
            return first, ~first

    else:
        of_a, of_b = e.reader(a, kind), e.reader(b, kind)
        if instruction.opcode == "max":
            of_a, of_b = of_b, of_a

        def rows(wg: Warpgroup) -> tuple[Any, Any]:
            a, b = of_a(wg), of_b(wg)
            return np.broadcast_to(a < b, wg.lanes), np.broadcast_to(b < a, wg.lanes)

    def note(wg: Warpgroup, mask: Mask) -> None:
        tally = wg.machine.tally
        if tally.chosen[index] != BOTH:
            tally.choose(index, wg, mask, *rows(wg), wg.machine.names)

    return note


def _compares(one: Instruction) -> bool:
    return one.opcode in ("min", "max") and one.modifiers in _COMPARED


def _selects(one: Instruction) -> bool:
    if one.opcode != "selp" or one.modifiers not in _SELECTED:
        return False
    values = one.operands[1:3]
    return not all(isinstance(value, Immediate) and value.bits in (0, 1) for value in values)


def _note_uses(one: Instruction, data: dict[Name, bool]) -> None:
    """Note of the registers that an instruction reads whether that is a use as data."""
    is_data = one.text.startswith(_DATA) or not _FLOATS.isdisjoint(one.modifiers)
    if not is_data and one.opcode in _CARRIES:
        is_data = any(data.get(name, False) for name in registers_of(one.operands[0]))
    if is_data:
        for operand in one.operands[1:]:
            if not isinstance(operand, Address):
                data.update(dict.fromkeys(registers_of(operand), True))
