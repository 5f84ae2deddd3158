"""The barrier table: rows are declared once, without offsets, and laid out together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from fa4gen.designs.common.model import Barrier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.designs.common.model import ArriveHow


def lay_out_barriers(rows: Sequence[Barrier], first_offset: int) -> tuple[Barrier, ...]:
    """Give each row its offset in bytes, one row after the other from ``first_offset`` on."""
    laid_out = []
    offset = first_offset
    for row in rows:
        laid_out.append(replace(row, offset=offset))
        offset += row.bytes
    return tuple(laid_out)


def barrier_row(
    name: str,
    slots: int,
    arrivals: int,
    how: ArriveHow,
    arrived_by: str,
    waited_by: str,
    meaning: str,
    *,
    first_wait: Literal[0, 1] = 0,
    transaction_bytes: int = 0,
    cta: Literal["own", "leader", "pair", "cluster"] = "own",
) -> Barrier:
    """Return a row that is not yet placed; see ``Barrier`` for the fields."""
    return Barrier(
        name=name,
        slots=slots,
        arrivals=arrivals,
        arrive_how=how,
        arrived_by=arrived_by,
        waited_by=waited_by,
        meaning=meaning,
        first_wait_parity=first_wait,
        transaction_bytes=transaction_bytes,
        cta=cta,
        offset=0,
    )
