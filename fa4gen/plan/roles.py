"""Warp roles and how the register file is split between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fa4gen.errors import ConfigError, Problem

if TYPE_CHECKING:
    from fa4gen.plan.hardware import Architecture

WARPGROUP = 128


@dataclass(frozen=True)
class RegisterSplit:
    """Registers per thread of the producer warpgroup and of each consumer warpgroup."""

    producer: int
    consumer: int


def registers_at_entry(arch: Architecture, num_consumers: int) -> int:
    """Registers per thread that the launch gives out, before setmaxnreg."""
    threads = WARPGROUP * (1 + num_consumers)
    return min(arch.registers // threads // 8 * 8, arch.max_registers_per_thread // 8 * 8 + 8)


def default_registers(num_consumers: int) -> RegisterSplit:
    """The split that leaves the consumers the most: the loader is one thread of address arithmetic."""
    return {
        1: RegisterSplit(56, 256),
        2: RegisterSplit(24, 240),
        3: RegisterSplit(32, 160),
    }[num_consumers]


def check_registers(arch: Architecture, split: RegisterSplit, num_consumers: int) -> None:
    """Refuse a split that setmaxnreg could never satisfy: it would hang at the first tile.

    Raises ConfigError with the arithmetic.
    """
    entry = registers_at_entry(arch, num_consumers)
    pool = entry * WARPGROUP * (1 + num_consumers)
    needed = WARPGROUP * (split.producer + num_consumers * split.consumer)
    if needed > pool:
        raise ConfigError(
            Problem(
                f"the roles need 128 * ({split.producer} + {num_consumers} * {split.consumer}) = "
                f"{needed} registers, but the launch has {pool}",
                remedy="lower registers.consumer or registers.producer, or drop the key",
                key="registers",
            )
        )
    if split.producer > entry or split.consumer < entry:
        raise ConfigError(
            Problem(
                f"the launch gives every thread {entry} registers: the producer can only give up "
                f"registers (got {split.producer}) and a consumer only take more (got {split.consumer})",
                remedy=f"choose registers.producer <= {entry} <= registers.consumer",
                key="registers",
            )
        )
