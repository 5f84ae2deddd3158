"""Checks of the program text, made once per launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.emulator.report import Finding, Severity

if TYPE_CHECKING:
    from fa4gen.emulator.machine import Machine
    from fa4gen.emulator.ptx.syntax import Function


def report_static(machine: Machine, function: Function) -> None:
    """Record what is wrong with the use of wgmma registers, whatever the schedule."""
    from fa4gen.emulator.wgmma_checks import check_registers

    for kind, message, site in check_registers(function):
        machine.log.add(
            Finding(kind, Severity.ERROR, message, site.where, site.line, function.name)
        )
