"""The translation of each opcode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar

from fa4gen.emulator.errors import UnsupportedError
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.translate.emit import Emitter

Translate: TypeAlias = Callable[[Instruction, Emitter], None]
Made = TypeVar("Made")
# Errors of a translation that assumes operands that an instruction does not have.
_SURPRISES: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError,
)  # fmt: skip


def apply(
    make: Callable[[Instruction, Emitter], Made], instruction: Instruction, emitter: Emitter
) -> Made:
    """Translate an instruction; UnsupportedError for operands that it cannot have."""
    try:
        return make(instruction, emitter)
    except _SURPRISES as error:
        raise UnsupportedError(
            instruction, f"its {len(instruction.operands)} operands are not those that it has"
        ) from error


def find(table: Mapping[str, Translate], instruction: Instruction) -> Translate:
    """The translation with the longest matching prefix; raises UnsupportedError if none has one."""
    words = (instruction.opcode, *instruction.modifiers)
    for count in range(len(words), 0, -1):
        function = table.get(".".join(words[:count]))
        if function is not None:
            return function
    raise UnsupportedError(instruction)
