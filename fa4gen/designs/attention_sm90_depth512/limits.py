"""The hardware's limits at depth 512: how the registers may be divided between the roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.values import (
    CONSUMER_WARPGROUPS,
    OWN_COLUMNS,
    OWN_KEYS,
)
from fa4gen.designs.shared.refusal import Fault
from fa4gen.designs.shared.roles import WARPGROUP, nearest_split, register_pool, registers_at_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90_depth512.values import Values

ROW_STATE_REGISTERS = 4
"""Maximum and sum of a thread's two rows: never in fewer registers."""
AUTO = [{"registers": "auto"}]


def exceeded_limits(values: Values) -> Iterator[Fault]:
    """Yield each limit that the values exceed."""
    yield from _register_split(values)
    yield from _consumer_registers(values)


def _register_split(values: Values) -> Iterator[Fault]:
    """Yield a fault for a split that setmaxnreg never brings about: it would hang."""
    arch, split = values.arch, values.registers
    nearest = nearest_split(arch, split, CONSUMER_WARPGROUPS)
    if nearest == split:
        return
    entry = registers_at_entry(arch, CONSUMER_WARPGROUPS)
    pool = register_pool(arch, CONSUMER_WARPGROUPS)
    if split.total(CONSUMER_WARPGROUPS) > pool:
        message = (
            f"registers: {WARPGROUP} * ({split.producer} + {CONSUMER_WARPGROUPS} * "
            f"{split.consumer}) = {split.total(CONSUMER_WARPGROUPS)} for all roles, but the launch "
            f"has {pool}"
        )
    else:
        message = (
            f"registers: the launch gives every thread {entry}, of which the producer can only "
            f"give up some (got {split.producer}) and a consumer only take more (got "
            f"{split.consumer})"
        )
    corrected = {"producer": nearest.producer, "consumer": nearest.consumer}
    yield Fault(
        kind="register split",
        message=message,
        keys=("registers",),
        remedies=([{"registers": corrected}], AUTO),
    )


def _consumer_registers(values: Values) -> Iterator[Fault]:
    """Yield a fault where what must be in registers under P.V does not fit them."""
    available = nearest_split(values.arch, values.registers, CONSUMER_WARPGROUPS).consumer
    needed = OWN_COLUMNS // 2 + OWN_KEYS // 2 + OWN_KEYS // 4 + ROW_STATE_REGISTERS
    if needed <= available:
        return
    yield Fault(
        kind="consumer registers",
        message=f"registers: a consumer thread holds {OWN_COLUMNS} / 2 of output + {OWN_KEYS} / 2 "
        f"of scores + {OWN_KEYS} / 4 of probabilities + {ROW_STATE_REGISTERS} of row maxima and "
        f"sums = {needed}, but has {available}",
        keys=("registers",),
        remedies=(AUTO,),
    )
