"""The hardware's limits at depth 512: how the registers may be divided between the roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90_depth512.model import HopperPairAttentionPlan
    from fa4gen.designs.common.refusal import Refusal


def exceeded_limits(plan: HopperPairAttentionPlan) -> Iterator[Refusal]:
    """Yield each limit that the plan exceeds: what is in registers under P.V must fit them."""
    columns, keys = plan.own_columns, plan.own_keys
    yield from limits.register_split(plan)
    yield from limits.consumer_registers(
        plan,
        columns // 2 + keys // 2 + keys // 4,
        f"{columns} / 2 of output + {keys} / 2 of scores + {keys} / 4 of probabilities",
        ("registers",),
        ([{"registers": "auto"}],),
    )
