"""The modules of instructions, with the opcodes that each translates."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final

from fa4gen.emulator.translate.outcome import MakeWaiting
from fa4gen.emulator.translate.registry import Translate

# Each module has TRANSLATIONS: a mapping from the first words of an opcode ("add",
# "cp.async.bulk.tensor") to a function (instruction, emitter). The longest match counts.
_FAMILIES: Final = (
    "scalar.integer",
    "scalar.logic",
    "scalar.floating_point",
    "scalar.packed",
    "scalar.cvt",
    "scalar.video",
    "scalar.moves",
    "memory.loads_and_stores",
    "memory.atomics",
    "memory.multimem",
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
    "refused",
)

# Those that also have instructions at which lanes may wait, in WAITING.
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


def load_waiting() -> Mapping[str, MakeWaiting]:
    """The instructions at which lanes may wait."""
    table: dict[str, MakeWaiting] = {}
    for family in _WAITING:
        module = import_module(f"fa4gen.emulator.instructions.{family}")
        table.update(module.WAITING)
    return table
