"""The places of scores, for the reference: the indices of an expression, as numbers and arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

QUERY, KEY = "query", "key"
SCORE = "score"
OF_TILE = ("head", "key_head", "batch")
"""Indices that are the same for all scores of a tile."""
INDICES = (QUERY, KEY, "row", *OF_TILE)
MOST_PLACES = 2**28
"""The most rows, keys, heads and batches: small multiples of an index then fit 32 bits."""


@dataclass(frozen=True)
class Places:
    """The indices of scores (rows, keys) of a head, and the tensors of the call."""

    query: Any
    """(rows, 1): the key on the diagonal."""
    key: Any
    row: Any
    head: int
    key_head: int
    batch: int
    tensors: Mapping[str, Any] = field(default_factory=dict)

    @property
    def indices(self) -> dict[str, Any]:
        """The values of INDICES by name."""
        return {name: getattr(self, name) for name in INDICES}
