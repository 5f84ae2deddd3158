"""The places of a kernel that its coverage counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.emulator.ptx.syntax import Instruction


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A step that sends lanes to two targets; ``expects``: whether the guard holds, and does not.

    ``skips``: the side that passes by a loop, where the other one enters it; None for others.
    """

    step: int
    guard: Instruction
    expects: tuple[bool, bool]
    skips: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """``branches``; the indices of ``instructions`` that can run; how many a source line has.

    ``choices`` are the indices of those that choose between two sizes. ``behind`` has, by index,
    the sides of branches that every way to an instruction leads by: see ``Unrun``.
    """

    branches: tuple[Branch, ...]
    instructions: tuple[int, ...]
    of_line: dict[str, int]
    choices: tuple[int, ...]
    behind: Callable[[int], tuple[tuple[int, bool], ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Vote:
    """A branch at the end of ``step`` that tests the predicate ``outcome`` of a vote.

    ``flips``: lanes branch when the vote failed, and do the work when they do not branch.
    """

    step: int
    site: Instruction
    branch: Instruction
    outcome: int
    flips: bool
