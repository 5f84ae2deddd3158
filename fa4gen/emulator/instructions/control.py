"""Control: pauses, register reallocation, and what has no effect here.

Branches, returns and exits are the scheduler's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from fa4gen.emulator.emit import Emitter
from fa4gen.emulator.gang import GANG_LANES, WARP_LANES, Gang
from fa4gen.emulator.instructions.registry import Translate
from fa4gen.emulator.lanes import Lanes, by_warp
from fa4gen.emulator.machine import Cta
from fa4gen.emulator.ptx.syntax import Immediate, Instruction
from fa4gen.emulator.waiting import End, MakeEnd, Outcome, Wait


def _make_nanosleep(i: Instruction, e: Emitter) -> End:
    if i.modifiers != ("u32",):
        raise e.refuse("nanosleep.u32 was expected")
    return lambda gang, lanes, timed_out: Outcome(lanes)


def _nothing(i: Instruction, e: Emitter) -> None:
    """Pmevent and the like: nothing that a kernel could notice."""


def _make_setmaxnreg(i: Instruction, e: Emitter) -> End:
    """The registers of a CTA as a pool: ``dec`` gives some back, ``inc`` waits for enough."""
    if i.modifiers not in (("inc", "sync", "aligned", "u32"), ("dec", "sync", "aligned", "u32")):
        raise e.refuse("setmaxnreg.inc or .dec .sync.aligned.u32 was expected")
    operand = i.operands[0]
    if not isinstance(operand, Immediate):
        raise e.refuse("the number of registers is a literal")
    wanted = operand.bits
    if not 24 <= wanted <= 256 or wanted % 8:
        raise e.refuse("24 to 256 registers in steps of 8")
    increases = i.modifiers[0] == "inc"

    def end(gang: Gang, lanes: Lanes, timed_out: bool) -> Outcome:
        machine = gang.machine
        cta = gang.cta
        if gang.lanes < GANG_LANES or int(gang.live.sum()) < GANG_LANES:
            machine.fault(
                "partial-warp",
                "setmaxnreg needs all four warps of the warpgroup",
                i,
                gang,
                lanes.mask,
            )
        if not machine.registers_per_thread:
            gang.state.get("met", set()).discard(i.line)
            return Outcome(lanes)  # without a bound on registers ptxas ignores the instruction
        if "registers" not in gang.state:  # of each warp
            gang.state["registers"] = np.full(gang.warps, machine.registers_per_thread)
        warps = by_warp(lanes.array(gang))
        current = int(gang.state["registers"][warps][0])
        if (wanted < current) if increases else (wanted > current):
            machine.find(
                "setmaxnreg",
                f"setmaxnreg.{i.modifiers[0]} to {wanted} from {current} registers a thread",
                i,
                gang,
                lanes.mask,
            )
        free = int(cta.state.get("free_registers", 0))
        need = (wanted - current) * WARP_LANES * int(warps.sum())
        if need > free:
            return Outcome(
                None,
                [
                    Wait(
                        lanes,
                        ("registers", cta.index),
                        lambda: (
                            f"waits for {wanted} registers a thread: {need - _free(cta)} more "
                            "registers than the CTA has free"
                        ),
                    )
                ],
            )
        cta.state["free_registers"] = free - need
        gang.state["registers"][warps] = wanted
        gang.state.get("met", set()).discard(i.line)
        machine.progress()
        machine.scheduler.wake_key(("registers", cta.index))
        return Outcome(lanes)

    return end


def _free(cta: Cta) -> int:
    return int(cta.state.get("free_registers", 0))


def default_registers(threads: int, directives: Mapping[str, tuple[int, ...]]) -> int:
    """Registers a thread that ptxas may use under the launch bounds; 0 without any bound.

    65536 registers of an SM over the CTAs that shall fit, rounded down to eight.
    """
    if "maxnreg" in directives:
        return directives["maxnreg"][0]
    bound = directives.get("reqntid") or directives.get("maxntid")
    if bound is None:
        return 0
    most = int(np.prod(bound))
    blocks = directives.get("minnctapersm", (1,))[0]
    return min(255, 65536 // (max(most, threads) * max(blocks, 1)) // 8 * 8)


TRANSLATIONS: Final[Mapping[str, Translate]] = {"pmevent": _nothing}

ENDS: Final[Mapping[str, MakeEnd]] = {
    "nanosleep": _make_nanosleep,
    "setmaxnreg": _make_setmaxnreg,
}
