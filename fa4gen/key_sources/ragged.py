"""Ragged: the rows of all sequences follow one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.key_sources.key_source import KeySource, Table
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Ragged(KeySource):
    """The rows of all sequences follow one another; offsets say where each begins."""

    name: ClassVar[str] = "ragged"
    CLIPPED: ClassVar[bool] = True

    @property
    @override
    def tables(self) -> tuple[Table, ...]:
        rows = "query rows" if self.of == "query" else "keys"
        meaning = f"where the {rows} of each sequence begin; the last one: where they all end"
        return (Table(f"{self.of}_offsets", ("sequences + 1",), meaning),)

    @override
    def begin(self, sequence: str) -> str:
        return f"{self.of}_offsets[{sequence}]"

    @override
    def count(self, sequence: str) -> str:
        return f"{self.of}_offsets[{sequence} + 1] - {self.of}_offsets[{sequence}]"

    @override
    def rows(self, sequence: int, lengths: int, tables: Mapping[str, Any]) -> Any:
        import numpy as np

        del lengths
        offsets = tables[f"{self.of}_offsets"]
        return np.arange(int(offsets[sequence]), int(offsets[sequence + 1]))
