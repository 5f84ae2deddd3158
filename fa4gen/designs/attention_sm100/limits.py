"""The hardware's limits on a Blackwell attention kernel, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm100.memory import KEY_STEP, TILE_ROWS
from fa4gen.designs.common import limits
from fa4gen.designs.common.refusal import Changes, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm100.config import BlackwellAttentionConfig
    from fa4gen.designs.attention_sm100.memory import FA4Memory

ROW_REGISTERS = 2
"""The registers of a softmax thread for the maximum and the sum of its row."""
DECIDED_TOGETHER = (
    "num_kv_stages",
    "BN",
    "num_pv_stages",
    "registers",
    "output_staging",
    "kv_ring",
    "num_qk_stages",
    "BM",
)
"""Keys that share out memory and registers; each may be left to the plan."""


def exceeded_limits(plan: FA4Memory) -> Iterator[Refusal]:
    """Yield each limit that the plan exceeds."""
    yield from _tensor_memory(plan)
    yield from _shared_memory(plan)
    yield from _register_file(plan)
    yield from _row_registers(plan)


def _tensor_memory(plan: FA4Memory) -> Iterator[Refusal]:
    needed, available = plan.columns_needed, plan.hardware.tensor_memory_columns
    tiles, depth = plan.num_qo, plan.value_depth
    fault = Refusal(
        kind="tensor memory",
        message=f"tensor memory: 2 * {plan.BN} columns for scores + {tiles} * {depth} for "
        f"outputs = {needed}, {available} available",
        keys=("BN", "BM", "value_depth", "depth"),
        remedies=(
            _narrower_blocks(plan),
            [{"BM": TILE_ROWS}, {"BM": TILE_ROWS, "BN": "auto"}] if tiles == 2 else [],
        ),
        last_resort=back_to_auto(plan.config),
    )
    yield from limits.exceeded(fault, needed, available)


def _narrower_blocks(plan: FA4Memory) -> Iterator[Changes]:
    return ({"BN": n} for n in range(plan.BN - KEY_STEP, 0, -KEY_STEP))


def _shared_memory(plan: FA4Memory) -> Iterator[Refusal]:
    ring = plan.rings[0]
    yield from limits.shared_memory(
        plan,
        (ring.key, "BN", "BM", "depth"),
        (ring.fewer(plan.config), _narrower_blocks(plan), _smaller_tiles(plan)),
        back_to_auto(plan.config),
    )


def _smaller_tiles(plan: FA4Memory) -> list[Changes]:
    return [{"BM": TILE_ROWS}] if plan.num_qo == 2 else []


def _register_file(plan: FA4Memory) -> Iterator[Refusal]:
    yield from limits.role_registers(
        plan,
        plan.num_qo,
        ([{"registers": "auto"}],),
        back_to_auto(plan.config),
    )


def _row_registers(plan: FA4Memory) -> Iterator[Refusal]:
    """Yield a fault where a row of scores does not fit the registers of a softmax thread.

    What else a thread keeps is for the compiler to say.
    """
    available = min(plan.registers.softmax, plan.hardware.max_registers_per_thread)
    needed = plan.BN + ROW_REGISTERS
    fault = Refusal(
        kind="registers of a row",
        message=f"registers: a softmax thread keeps the {plan.BN} scores of a row and "
        f"{ROW_REGISTERS} of row state = {needed}, but has {available}",
        keys=("BN", "registers"),
        remedies=limits.each_to_auto(plan.config),
        last_resort=back_to_auto(plan.config),
    )
    yield from limits.exceeded(fault, needed, available)


def back_to_auto(config: BlackwellAttentionConfig) -> Iterator[Changes]:
    """Yield changes that leave keys to the plan, fewest first; all of them always suffice.

    But for values too deep for tensor memory, which are left to the plan last.
    """
    yield from limits.back_to_auto(config, DECIDED_TOGETHER)
    if config.value_depth != "auto":
        yield from limits.back_to_auto(config, (*DECIDED_TOGETHER, "value_depth"))
