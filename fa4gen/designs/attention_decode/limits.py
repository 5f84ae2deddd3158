"""The hardware's limits on a decode kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common import limits
from fa4gen.designs.common.decode_model import MMA_ROWS
from fa4gen.designs.common.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_decode.model import DecodeAttentionPlan


def exceeded_limits(plan: DecodeAttentionPlan) -> Iterator[Refusal]:
    """Yield each limit that the values exceed."""
    yield from limits.shared_memory(plan, (plan.ring.key,), (plan.ring.fewer(plan.config),))
    yield from _registers(plan)


def _registers(plan: DecodeAttentionPlan) -> Iterator[Refusal]:
    """Yield a fault where what a thread of a consumer holds at once does not fit its registers."""
    depth, rows = plan.depth, plan.packed_rows
    if plan.is_wide:
        keys = plan.part_keys
        needed = depth // 2 + keys // 2 + keys // 4
        holds = f"{depth} / 2 of output + {keys} / 2 of scores + {keys} / 4 of probabilities"
    else:
        held = 0 if plan.query_in_shared else 2
        needed = (held + 4) * (depth // 16) * (rows // MMA_ROWS)
        columns = "(2 of queries + 4 of output)" if held else "4 of output"
        holds = f"{depth} / 16 * {rows} / 8 * {columns}"
    yield from limits.exceeded(
        Refusal(
            kind="consumer registers",
            message=f"registers: a thread of a consumer holds {holds} = {needed}, but has "
            f"{plan.registers}",
            keys=("packed_rows", "depth"),
            remedies=([{"packed_rows": "auto"}],),
        ),
        needed,
        plan.registers,
    )
