"""Dense: every sequence has as many rows, in a batch of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.key_sources.key_source import KeySource, Table
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Dense(KeySource):
    """Every sequence has as many rows; with lengths, only the first of them count."""

    has_lengths: bool = False

    name: ClassVar[str] = "dense"

    @property
    @override
    def clipped(self) -> bool:
        return self.has_lengths

    @property
    @override
    def tables(self) -> tuple[Table, ...]:
        if not self.has_lengths:
            return ()
        return (Table(f"{self.of}_lengths", ("sequences",), "keys of each sequence that count"),)

    def begin(self, sequence: str) -> str:
        """Return CUDA for the batch of the sequence."""
        return sequence

    @override
    def count(self, sequence: str) -> str:
        rows = f"{self.of}_rows"
        return f"min({self.of}_lengths[{sequence}], {rows})" if self.has_lengths else rows

    @override
    def rows(self, sequence: int, lengths: int, tables: Mapping[str, Any]) -> Any:
        import numpy as np

        count = int(tables[f"{self.of}_lengths"][sequence]) if self.has_lengths else lengths
        return sequence * lengths + np.arange(count)
