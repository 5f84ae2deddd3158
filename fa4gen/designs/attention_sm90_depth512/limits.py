"""The hardware's limits at depth 512: how the registers may be divided between the roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90_depth512.values import (
    OWN_COLUMNS,
    OWN_KEYS,
)
from fa4gen.designs.common import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90_depth512.values import Values
    from fa4gen.designs.common.refusal import Refusal


def exceeded_limits(values: Values) -> Iterator[Refusal]:
    """Yield each limit that the values exceed: what is in registers under P.V must fit them."""
    yield from limits.register_split(values)
    yield from limits.consumer_registers(
        values,
        OWN_COLUMNS // 2 + OWN_KEYS // 2 + OWN_KEYS // 4,
        f"{OWN_COLUMNS} / 2 of output + {OWN_KEYS} / 2 of scores + {OWN_KEYS} / 4 of probabilities",
        ("registers",),
        ([{"registers": "auto"}],),
    )
