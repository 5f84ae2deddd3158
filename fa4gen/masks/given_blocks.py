"""A mask with the blocks of keys that a call names, as a reference computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fa4gen.masks.mask import Mask
from fa4gen.overriding import override

if TYPE_CHECKING:
    from fa4gen.expressions.places import Places

SEEN_BLOCKS = "seen_blocks"
"""The tensor of a reference: (batch, heads with lists, blocks of rows, blocks of keys), bool."""


@dataclass(frozen=True)
class GivenBlocksMask(Mask):
    """The keys of ``mask`` that are in a block which the row's list names."""

    mask: Mask
    rows: int
    """Query rows that share a list."""
    keys: int
    """Keys of a block."""
    heads: str
    """The heads with lists of their own: "query" or "key"."""

    @property
    @override
    def reads_places(self) -> bool:
        return True

    @property
    @override
    def span(self) -> int | None:
        return self.mask.span

    @override
    def bounds(self, position: Any, key_rows: int) -> tuple[Any, Any]:
        return self.mask.bounds(position, key_rows)

    @override
    def sees_at(self, places: Places, xp: Any) -> Any:
        head = places.head if self.heads == "query" else places.key_head
        named = places.tensors[SEEN_BLOCKS][places.batch, head]
        sees = named[places.row // self.rows, places.key // self.keys]
        return sees & self.mask.sees_at(places, xp)
