"""The observer for the checks that a caller chooses."""

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
    """Return an observer with the chosen checks; one that ignores all events if there are none.

    Every byte of ``outputs`` has to be written.
    """
    options = CheckOptions.parse(checks)
    if not options.any():
        return Observer()
    from fa4gen.emulator.checks.observer import RaceObserver

    return RaceObserver(machine, options=options, outputs=outputs)
