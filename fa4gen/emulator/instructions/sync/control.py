"""Control: pauses, register reallocation, and instructions without effect here.

Branches, returns and exits are the scheduler's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.ptx.syntax import Function, Immediate, Instruction
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.lanes import Lanes, by_warp
from fa4gen.emulator.state.machine import Cta, Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, WARPGROUP_LANES, Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.outcome import MakeWaiting, Outcome, Wait, Waiting
from fa4gen.emulator.translate.registry import Translate

_WAKES_ONE_IN: Final = 8
"""The inverse of the share of sleeping threads that wake at once."""
_OF_SM: Final = 65536
"""Registers of an SM."""
_MOST: Final = 255
"""Registers that a thread can name."""


def _make_nanosleep(i: Instruction, e: Emitter) -> Waiting:
    if i.modifiers != ("u32",):
        raise e.refuse("nanosleep.u32 was expected")

    def end(wg: Warpgroup, lanes: Lanes, timed_out: bool) -> Outcome:
        # Any time up to twice the operand: mostly until no other thread can go on, so that threads
        # that poll memory do not take the turns of those that they wait for.
        if timed_out or wg.machine.random.randrange(_WAKES_ONE_IN) == 0:
            return Outcome(lanes)
        return Outcome(None, [Wait(lanes, ("nanosleep", id(wg)), lambda: "it sleeps", True)])

    return end


def _nothing(i: Instruction, e: Emitter) -> None:
    """Pmevent and the like: nothing that a kernel could notice."""


def _make_setmaxnreg(i: Instruction, e: Emitter) -> Waiting:
    """The registers of a CTA as a pool: ``dec`` returns some, ``inc`` waits for enough.

    The PTX ISA requires the same instruction of all warps of a warpgroup. The hardware reallocates
    warp by warp and never looks at the others, and so does this: differences are reported.
    """
    if i.modifiers not in (("inc", "sync", "aligned", "u32"), ("dec", "sync", "aligned", "u32")):
        raise e.refuse("setmaxnreg.inc or .dec .sync.aligned.u32 was expected")
    operand = i.operands[0]
    if not isinstance(operand, Immediate):
        raise e.refuse("the number of registers is a literal")
    wanted = operand.bits
    if not 24 <= wanted <= 256 or wanted % 8:
        raise e.refuse("24 to 256 registers in steps of 8")
    increases = i.modifiers[0] == "inc"

    def end(wg: Warpgroup, lanes: Lanes, timed_out: bool) -> Outcome:
        machine = wg.machine
        cta = wg.cta
        if not machine.registers_per_thread:
            return Outcome(lanes)  # without a bound on registers ptxas ignores the instruction
        held = _HELD.of(wg)
        lane_warps = np.arange(wg.lanes) // WARP_LANES
        granted = np.zeros(wg.warps, np.bool_)
        asking = by_warp(lanes.array(wg))
        for warp in np.flatnonzero(asking).tolist():
            current = int(held[warp])
            if (wanted < current) if increases else (wanted > current):
                machine.find(
                    "setmaxnreg",
                    f"setmaxnreg.{i.modifiers[0]} to {wanted} from {current} registers a thread",
                    i,
                    wg,
                    lanes.mask,
                )
            need = (wanted - current) * WARP_LANES
            if need > _FREE.of(cta):
                continue
            _FREE.set(cta, _FREE.of(cta) - need)
            held[warp] = wanted
            granted[warp] = True
            _compare(wg, warp, i, lanes.mask)
        if granted.any():
            machine.progress()
            machine.scheduler.wake(("registers", cta.index))
        rest = asking & ~granted
        if not rest.any():
            return Outcome(lanes)
        waiting = lanes.array(wg) & rest[lane_warps]
        wait = Wait(Lanes.of(waiting), ("registers", cta.index), lambda: _reason(wg, rest, wanted))
        done = Lanes.of(lanes.array(wg) & granted[lane_warps]) if granted.any() else None
        return Outcome(done, [wait])

    return end


_HELD: Final = Attached[Warpgroup, NDArray[np.int64]](
    lambda wg: np.full(wg.warps, wg.machine.registers_per_thread)
)
"""Registers a thread of each warp, as they are now."""
_EXECUTED: Final = Attached[Warpgroup, list[list[Instruction]]](
    lambda wg: [[] for _ in range(wg.warps)]
)
"""The reallocations of each warp, in its order."""
_FREE: Final = Attached[Cta, int](lambda cta: 0)
"""Registers that warps have released and no warp has taken."""


def _compare(wg: Warpgroup, warp: int, site: Instruction, mask: Mask) -> None:
    """Note a warp's reallocation; remark on one that differs from another warp's."""
    executed = _EXECUTED.of(wg)
    place = len(executed[warp])
    executed[warp].append(site)
    for others in executed:
        other = others[place] if len(others) > place else site
        if other is site:
            continue
        if (other.text, other.operands) == (site.text, site.operands):
            text = "the warps of a warpgroup execute setmaxnreg at different places"
        else:
            text = (
                f"one warp of a warpgroup executes {_name(site)}, another {_name(other)} "
                f"({other.position}); each gets what it asks for"
            )
        wg.machine.remark("partial-warp", text, site, wg, mask)
        return


def _name(site: Instruction) -> str:
    count = site.operands[0]
    assert isinstance(count, Immediate)
    return f"setmaxnreg.{site.modifiers[0]} {count.bits}"


def _without(wg: Warpgroup) -> tuple[list[int], Instruction] | None:
    """Warps that have reallocated less often than another of the warpgroup, and by what."""
    executed = _EXECUTED.of(wg)
    most = max(executed, key=len, default=[])
    short = [warp for warp, those in enumerate(executed) if len(those) < len(most)]
    short += range(wg.warps, WARPGROUP_LANES // WARP_LANES)
    return (short, most[-1]) if short and most else None


def check_reallocations(wg: Warpgroup) -> None:
    """A warpgroup has exited: report a setmaxnreg that some of its warps did not execute."""
    missing = _without(wg)
    if missing is not None:
        warps, site = missing
        first = wg.first_thread // WARP_LANES
        wg.machine.remark(
            "partial-warp",
            f"{_name(site)} is not executed by "
            f"{', '.join(f'warp {first + warp}' for warp in warps)} of the warpgroup; the others "
            "do not wait for that",
            site, wg, None, Severity.ISA,
        )  # fmt: skip


def _reason(wg: Warpgroup, warps: NDArray[np.bool_], wanted: int) -> str:
    need = int((wanted - _HELD.of(wg)[warps]).sum()) * WARP_LANES - _FREE.of(wg.cta)
    text = f"waits for {wanted} registers a thread: {need} more registers than the CTA has free"
    for other in wg.cta.warpgroups:
        missing = _without(other)
        if missing is not None and missing[1].modifiers[0] == "dec":
            first = other.first_thread // WARP_LANES
            those = ", ".join(f"warp {first + warp}" for warp in missing[0])
            text += f"; {those} did not execute {_name(missing[1])} ({missing[1].position})"
    return text


def default_registers(threads: int, function: Function) -> int:
    """Registers a thread with which a kernel begins, as ptxas decides; 0 without any bound.

    Those of an SM over the warps of the CTAs that shall fit, four by four, rounded down to eight;
    but no more than the largest ``setmaxnreg.inc`` asks for.
    """
    directives = function.directives
    if "maxnreg" in directives:
        return directives["maxnreg"][0]
    bound = directives.get("reqntid") or directives.get("maxntid")
    if bound is None:
        return 0
    most = max(int(np.prod(bound)), threads) * max(directives.get("minnctapersm", (1,))[0], 1)
    whole = -(-most // WARPGROUP_LANES) * WARPGROUP_LANES
    wanted = [
        one.operands[0].bits
        for one in function.instructions
        if one.opcode == "setmaxnreg" and "inc" in one.modifiers
        if isinstance(one.operands[0], Immediate)
    ]
    return min(_MOST, _OF_SM // whole // 8 * 8, max(wanted, default=_MOST))


TRANSLATIONS: Final[Mapping[str, Translate]] = {"pmevent": _nothing}

WAITING: Final[Mapping[str, MakeWaiting]] = {
    "nanosleep": _make_nanosleep,
    "setmaxnreg": _make_setmaxnreg,
}
