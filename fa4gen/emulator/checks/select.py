"""From what the caller asks for to the observer that does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fa4gen.emulator.checks.options import CheckOptions
from fa4gen.emulator.state.machine import Observer

if TYPE_CHECKING:
    from fa4gen.emulator.state.global_arrays import Output
    from fa4gen.emulator.state.machine import Machine


def make_observer(
    machine: Machine,
    checks: bool | Iterable[str] | CheckOptions,
    outputs: Sequence[Output] = (),
) -> Observer:
    """An observer with the checks asked for; one that looks away if there are none.

    ``outputs`` are to be written, whole.
    """
    options = CheckOptions.parse(checks)
    if not options.any():
        return Observer()
    from fa4gen.emulator.checks.observer import RaceObserver

    return RaceObserver(machine, options=options, outputs=outputs)
