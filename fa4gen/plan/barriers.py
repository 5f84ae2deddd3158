"""The barrier table: rows are declared once, without offsets, and laid out together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fa4gen.plan.model import Barrier


def lay_out_barriers(rows: Sequence[Barrier], first_offset: int) -> tuple[Barrier, ...]:
    """Give each row its offset in bytes, one row behind the other from ``first_offset`` on."""
    laid_out = []
    offset = first_offset
    for row in rows:
        laid_out.append(replace(row, offset=offset))
        offset += row.bytes
    return tuple(laid_out)
