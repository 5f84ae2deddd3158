"""The result, for the scheduler, of an instruction at which lanes may wait."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeAlias

from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.lanes import Lanes
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.translate.emit import Emitter


@dataclass(frozen=True, slots=True)
class Wait:
    """Lanes that have to wait until ``key`` is woken or released.

    Woken lanes execute the instruction again, released ones go on after it. ``reason`` names the
    missing event, for a deadlock report. With ``may_fail`` the instruction may give up: when
    nothing else can go on, the lanes execute it once more with ``timed_out`` set.
    """

    lanes: Lanes
    key: Hashable
    reason: Callable[[], str]
    may_fail: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Lanes that are done with the instruction, and those that wait."""

    done: Lanes | None
    waits: list[Wait] = field(default_factory=list)


Waiting: TypeAlias = Callable[[Warpgroup, Lanes, bool], Outcome]
"""(wg, lanes, timed_out) -> outcome"""

MakeWaiting: TypeAlias = Callable[[Instruction, Emitter], Waiting]
