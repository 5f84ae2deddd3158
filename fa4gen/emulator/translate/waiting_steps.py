"""The instructions at which lanes may wait, prepared for the scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.entry_code import Code
from fa4gen.emulator.translate.outcome import MakeWaiting, Waiting
from fa4gen.emulator.translate.registry import apply


def make_waiting(code: Code, table: Mapping[str, MakeWaiting]) -> dict[int, Waiting]:
    """Prepare the instructions at which lanes may wait: step -> function."""
    waiting: dict[int, Waiting] = {}
    for step in code.steps:
        if step.end is None or step.end.opcode in ("bra", "brx", "ret", "exit", "trap"):
            continue
        emitter = Emitter(code.layout, True, {})
        emitter.instruction = step.end
        words = (step.end.opcode, *step.end.modifiers)
        for count in range(len(words), 0, -1):
            make = table.get(".".join(words[:count]))
            if make is not None:
                waiting[step.index] = apply(make, step.end, emitter)
                break
        else:
            raise emitter.refuse("")
    return waiting
