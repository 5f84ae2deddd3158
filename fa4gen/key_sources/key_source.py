"""The interface of key sources: the places of a sequence's rows, for a kernel.

A kernel finds a sequence's rows by two numbers, read on the device or passed: the first row, and
the number of rows. An entry has their CUDA, the tables that they are read from, and in NumPy the
rows themselves.

Rows that are ``CLIPPED`` are copied by tensor maps that end where the sequence ends, at whatever
row that is: TMA reads nothing past it, and fills with zeros. So no number of a neighbour, of
unused memory or of another page reaches a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Table:
    """An array of int32 on the GPU that a kernel reads lengths or places from."""

    name: str
    """The name of the kernel's parameter and of the call's argument."""
    axes: tuple[str, ...]
    """The index: "sequences", "sequences + 1", "pages of a sequence"."""
    meaning: str


@dataclass(frozen=True)
class KeySource:
    """The places of a sequence's rows; this base has no rows."""

    of: Literal["query", "key"]
    """The rows' tensors: "query" for queries and outputs, "key" for keys and values."""

    name: ClassVar[str]
    """The config's word."""
    CLIPPED: ClassVar[bool] = False
    """Whether the tensor maps end where a sequence does."""

    @property
    def clipped(self) -> bool:
        """Whether the tensor maps of this source end where a sequence does."""
        return self.CLIPPED

    @property
    def tables(self) -> tuple[Table, ...]:
        """The arrays that have to be read on the device."""
        return ()

    @property
    def page_rows(self) -> int:
        """Rows of a page; 1 where every row has a place of its own."""
        return 1

    def pages(self, rows: Any) -> Any:
        """Return the pages that ``rows`` rows take: a number, or a NumPy array of numbers."""
        return -(-rows // self.page_rows)

    def box_rows(self, rows: int) -> int:
        """Return the rows of a box that are in one place, where a box may have ``rows``."""
        return rows

    def begin(self, sequence: str) -> str:
        """Return CUDA for where the rows of ``sequence`` begin: a row, or its batch."""
        raise NotImplementedError

    def count(self, sequence: str) -> str:
        """Return CUDA for the rows of ``sequence``; ``key_rows`` is the most that it may have."""
        raise NotImplementedError

    def rows(self, sequence: int, lengths: int, tables: Mapping[str, Any]) -> Any:
        """Return the rows of a sequence, in order, as a NumPy array of row numbers.

        They are counted over all batches, or pages, of a tensor that has ``lengths`` rows in each.
        ``tables``: NumPy arrays by name.
        """
        raise NotImplementedError
