"""``brx.idx``: lanes go on where a table says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fa4gen.emulator.ptx.syntax import LabelTable
from fa4gen.emulator.state.lanes import Lanes
from fa4gen.emulator.translate.emit import Emitter

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.state.machine import Machine, Warpgroup
    from fa4gen.emulator.translate.entry_code import Code


def jump(
    machine: Machine, code: Code, wg: Warpgroup, lanes: Lanes, end: Instruction
) -> Iterator[tuple[int, Lanes]]:
    """The steps at which lanes go on, each with its lanes."""
    emitter = Emitter(code.layout, True, {})
    emitter.instruction = end
    index = np.broadcast_to(emitter.reader(end.operands[0], "u32")(wg), wg.lanes)
    table = end.operands[1]
    assert isinstance(table, LabelTable)
    mask = lanes.array(wg)
    for value in np.unique(index[mask]):
        if value >= len(table.targets):
            machine.fault(
                "illegal-instruction",
                f"brx.idx with index {value} of {len(table.targets)}",
                end,
                wg,
                lanes.mask,
            )
        yield code.step_at[table.targets[int(value)]], Lanes.of(mask & (index == value))
