"""The rules of depth 512 for configs, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common import limits
from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100_depth512.memory import Depth512Memory

ROW_REGISTERS = 2
"""The registers of a softmax thread for the maximum and the sum of its half of a row."""
MAX_STAGES = 11
"""One warp initialises 10 + 2 * stages barriers, each lane one of them."""


def faults(plan: Depth512Memory) -> Iterator[Refusal]:
    """Yield the config's requests that cannot work."""
    yield from _stages(plan)
    yield from _registers(plan)
    yield from limits.range_of_fp8(plan)


def _stages(plan: Depth512Memory) -> Iterator[Refusal]:
    key, stages = plan.ring.key, plan.ring.slots
    if stages > MAX_STAGES:
        yield Refusal(
            kind="barriers",
            message=f"{key}: one warp initialises the barriers, a lane each, and 10 + 2 * "
            f"{stages} = {10 + 2 * stages} are more than its 32 lanes",
            keys=(key,),
            remedies=(({key: n} for n in range(MAX_STAGES, 0, -1)),),
        )
        return
    yield from limits.shared_memory(plan, (key,), (plan.ring.fewer(plan.config),))


def _registers(plan: Depth512Memory) -> Iterator[Refusal]:
    """Yield faults of registers that no compiler changes."""
    to_auto: tuple[list[Changes], ...] = ([{"registers": "auto"}],)
    yield from limits.role_registers(plan, 1, to_auto)
    available = min(plan.registers.softmax, plan.hardware.max_registers_per_thread)
    scores = plan.BN // 2
    needed = scores + ROW_REGISTERS
    fault = Refusal(
        kind="registers of a row",
        message=f"registers: a softmax thread keeps {scores} scores and {ROW_REGISTERS} of row "
        f"state = {needed}, but has {available}",
        keys=("registers",),
        remedies=to_auto,
    )
    yield from limits.exceeded(fault, needed, available)
