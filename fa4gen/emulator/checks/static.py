"""Checks of the program text, made once per launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.emulator.ptx.mangled import shown_name
from fa4gen.emulator.report import Severity

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Function
    from fa4gen.emulator.state.machine import Machine


def report_static(machine: Machine, function: Function) -> None:
    """Record errors in the use of wgmma registers that no schedule avoids."""
    from fa4gen.emulator.ptx.flow.wgmma_registers import find_flights

    flights = find_flights(function)
    for severity, found in ((Severity.ERROR, flights.wrong), (Severity.REVIEW, flights.doubtful)):
        for kind, message, site in found:
            machine.log.add(kind, severity, message, site, shown_name(function.name))
