"""Paged: keys and values are in pages of a cache, and a table says in which."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.key_sources.key_source import KeySource, Table
from fa4gen.overriding import override

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Paged(KeySource):
    """Pages of ``page_size`` keys; entries of the table past a sequence's end are not used."""

    page_size: int

    name: ClassVar[str] = "paged"
    CLIPPED: ClassVar[bool] = True

    @property
    @override
    def page_rows(self) -> int:
        return self.page_size

    @override
    def box_rows(self, rows: int) -> int:
        return math.gcd(rows, self.page_size)

    @property
    @override
    def tables(self) -> tuple[Table, ...]:
        return (
            Table("key_lengths", ("sequences",), "keys of each sequence"),
            Table(
                "page_table",
                ("sequences", "most pages of a sequence"),
                "the page of each sequence's keys, page by page",
            ),
        )

    def begin(self, sequence: str) -> str:
        """Return CUDA for the sequence's row of the page table."""
        return sequence

    @override
    def count(self, sequence: str) -> str:
        return f"min(key_lengths[{sequence}], key_rows)"

    @override
    def rows(self, sequence: int, lengths: int, tables: Mapping[str, Any]) -> Any:
        import numpy as np

        del lengths
        keys = np.arange(int(tables["key_lengths"][sequence]))
        pages = tables["page_table"][sequence][keys // self.page_size]
        return pages.astype(np.int64) * self.page_size + keys % self.page_size
