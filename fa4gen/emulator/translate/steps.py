"""Steps: straight runs of instructions that lanes enter at the first one only.

A step ends before a label, before an instruction that lanes of a warp (or warpgroup) execute
together, and at every instruction that may branch or wait; that last one is the step's ``end``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.lanes import PARTIAL, WARPGROUP, WARPS

Run: TypeAlias = Callable[[Any, Any], None]

# Opcodes that end a step and are the scheduler's: those that leave for elsewhere ...
_LEAVES: Final = ("bra", "brx", "ret", "exit", "trap")
# ... and those that may wait, which are executed again once the awaited event may have happened.
_WAITS: Final = (
    "bar", "barrier", "mbarrier.try_wait", "mbarrier.test_wait", "nanosleep", "setmaxnreg",
    "tcgen05.alloc",
)  # fmt: skip
# (not these, which begin with the same words)
_NO_WAITS: Final = ("barrier.cluster.arrive", "bar.warp")
# Joint instructions of a whole warpgroup, not of a warp.
_WARPGROUP: Final = ("wgmma",)


def starts_with(instruction: Instruction, words: tuple[str, ...]) -> bool:
    """Whether the opcode begins with one of ``words``, whole components."""
    text = instruction.text + "."
    return any(text.startswith(word + ".") for word in words)


def waits(instruction: Instruction) -> bool:
    """Whether lanes may have to wait at an instruction."""
    return starts_with(instruction, _WAITS) and not starts_with(instruction, _NO_WAITS)


def ends_step(instruction: Instruction) -> bool:
    return starts_with(instruction, _LEAVES) or waits(instruction)


def joint_level(instruction: Instruction) -> int:
    """The lanes that execute an instruction together: none in particular, a warp, a warpgroup."""
    if starts_with(instruction, _WARPGROUP):
        return WARPGROUP
    words = instruction.modifiers
    if (
        "sync" in words
        or "aligned" in words
        or (instruction.opcode == "bar" and "warp" not in words)
    ):
        return WARPS
    return PARTIAL


@dataclass(slots=True, eq=False)
class Step:
    """Instructions ``start`` to ``stop``, then ``end`` (or on to the next step).

    ``joint`` is the level that the first instruction needs; ``guard`` is set for a step that has
    nothing but a guard: lanes where it holds go on to the next step, the others to ``skip``.
    """

    index: int
    start: int
    stop: int
    end: Instruction | None
    joint: int
    entered: bool
    guard: Instruction | None = None
    skip: int = -1
    functions: dict[tuple[int, bool], tuple[Run, int]] | None = None
