"""Which translation an opcode has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fa4gen.emulator.errors import UnsupportedError
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.translate.emit import Emitter

Translate: TypeAlias = Callable[[Instruction, Emitter], None]


def find(table: Mapping[str, Translate], instruction: Instruction) -> Translate:
    """The translation with the longest matching prefix; raises UnsupportedError if none has one."""
    words = (instruction.opcode, *instruction.modifiers)
    for count in range(len(words), 0, -1):
        function = table.get(".".join(words[:count]))
        if function is not None:
            return function
    raise UnsupportedError(instruction)
