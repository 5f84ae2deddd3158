"""Which family translates an opcode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, TypeAlias

from fa4gen.emulator.errors import UnsupportedError
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.outcome import MakeEnd

Translate: TypeAlias = Callable[[Instruction, Emitter], None]

# Each module has TRANSLATIONS: a mapping from the first words of an opcode ("add",
# "cp.async.bulk.tensor") to a function (instruction, emitter). The longest match counts.
_FAMILIES: Final = (
    "scalar.integer",
    "scalar.logic",
    "scalar.floating_point",
    "scalar.packed",
    "scalar.cvt",
    "scalar.moves",
    "memory.loads_and_stores",
    "memory.atomics",
    "sync.warp",
    "mma.ldmatrix",
    "copy.cp_async",
    "sync.mbarrier",
    "sync.barriers",
    "sync.fences",
    "copy.bulk",
    "copy.tensor_copy",
    "copy.tensormap",
    "sync.cluster",
    "copy.launch_control",
    "wgmma.wgmma",
    "tcgen05.memory",
    "tcgen05.mma",
    "sync.control",
)

# Those that also have instructions at which lanes may wait, in ENDS.
_WAITING: Final = ("sync.mbarrier", "sync.barriers", "sync.control", "tcgen05.memory")


def load_families() -> Mapping[str, Translate]:
    """Join the tables of all families."""
    table: dict[str, Translate] = {}
    for family in _FAMILIES:
        module = import_module(f"fa4gen.emulator.instructions.{family}")
        for key, function in module.TRANSLATIONS.items():
            if key in table:
                raise AssertionError(f"two families translate {key}")
            table[key] = function
    return table


def find(table: Mapping[str, Translate], instruction: Instruction) -> Translate:
    """The translation with the longest matching prefix; raises UnsupportedError if none has one."""
    words = (instruction.opcode, *instruction.modifiers)
    for count in range(len(words), 0, -1):
        function = table.get(".".join(words[:count]))
        if function is not None:
            return function
    raise UnsupportedError(instruction)


def load_ends() -> Mapping[str, MakeEnd]:
    """The instructions at which lanes may wait."""
    table: dict[str, MakeEnd] = {}
    for family in _WAITING:
        module = import_module(f"fa4gen.emulator.instructions.{family}")
        table.update(module.ENDS)
    return table
