"""Warp roles: how the register file is split between them, and what a wgmma takes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.kernel_config import RegisterBudget
from fa4gen.designs.common.model import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.designs.common.hardware import Architecture

WARPGROUP = 128
"""Threads."""
WARPGROUP_WARPS = 4
"""Warps. One lane of each arrives for the warpgroup."""
WARPGROUP_ROWS = 64
"""The rows of one wgmma."""
REGISTER_STEP = 8
"""Threads get registers in multiples of this many, and setmaxnreg takes no other number."""


def default_registers(num_consumers: int) -> RegisterBudget:
    """Return the split that leaves the consumers the most.

    The loader is one thread of address arithmetic: it makes do with the rest.
    """
    return {
        1: RegisterBudget(producer=56, consumer=256),
        2: RegisterBudget(producer=24, consumer=240),
        3: RegisterBudget(producer=32, consumer=160),
    }[num_consumers]


def registers_at_entry(arch: Architecture, num_consumers: int) -> int:
    """Return the registers per thread that the launch gives out, before setmaxnreg."""
    threads = WARPGROUP * (1 + num_consumers)
    return min(
        _round_down(arch.registers // threads),
        _round_down(arch.max_registers_per_thread) + REGISTER_STEP,
    )


def register_pool(arch: Architecture, num_consumers: int) -> int:
    """Return the registers of the launch: what one warpgroup takes, another has given up."""
    return registers_at_entry(arch, num_consumers) * WARPGROUP * (1 + num_consumers)


def nearest_split(arch: Architecture, split: RegisterBudget, num_consumers: int) -> RegisterBudget:
    """Return the split nearest to ``split`` that setmaxnreg can bring about.

    The producer only gives up registers, the consumers only take more, and together they take no
    more than the launch has: a larger demand is never met, and the kernel hangs.
    """
    entry = registers_at_entry(arch, num_consumers)
    producer = min(split.producer, entry)
    left = register_pool(arch, num_consumers) // WARPGROUP - producer
    most = min(_round_down(left // num_consumers), 256)
    return RegisterBudget(producer=producer, consumer=min(max(split.consumer, entry), most))


def wgmma_registers(columns: int, *, register_a: bool) -> int:
    """Return the registers a thread has to have at launch for a wgmma of 64 x ``columns``.

    ptxas takes no wgmma with fewer, whatever else there is: error C7602 names this number, its sums
    and 26 more, with ``register_a`` those of the A operand, too.
    """
    return columns // 2 + (30 if register_a else 26)


def _round_down(registers: int) -> int:
    return registers // REGISTER_STEP * REGISTER_STEP


def consumer_roles(
    split: RegisterBudget, num_consumers: int, work: Callable[[int], str]
) -> list[Role]:
    """Return the consumer warpgroups, after the producer's; ``work`` says what each does."""
    return [
        Role(
            name=f"consume {i}",
            first_warp=WARPGROUP_WARPS * (1 + i),
            num_warps=WARPGROUP_WARPS,
            registers=split.consumer,
            work=work(i),
        )
        for i in range(num_consumers)
    ]
