"""Shadow of one page of global memory that somebody writes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

PAGE_BITS: Final = 16
PAGE: Final = 1 << PAGE_BITS


class Accesses:
    """The latest access of a kind to each cell.

    Each has the accessing thread (numbered over all clusters, or -1), the thread's epoch, the
    cluster's round and the site.
    """

    __slots__ = ("epoch", "owner", "round", "site")

    def __init__(self, cells: int) -> None:
        self.owner = np.full(cells, -1, np.int64)
        self.epoch = np.zeros(cells, np.uint32)
        self.round = np.zeros(cells, np.uint32)
        self.site = np.zeros(cells, np.int32)

    def note(self, at: Any, owner: Any, epoch: Any, number: int, site: int) -> None:
        self.owner[at] = owner
        self.epoch[at] = epoch
        self.round[at] = number
        self.site[at] = site

    def refine(self, factor: int) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name).repeat(factor))


class Page:
    """Cells of four bytes, or less from the first narrower access on."""

    def __init__(self) -> None:
        self.shift = 2
        self.writes = Accesses(PAGE >> 2)
        self.reads: Accesses | None = None

    def cells(self, offsets: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Cells of accesses of ``size`` bytes at offsets into the page."""
        self.narrow(size)
        first: NDArray[np.int64] = offsets >> self.shift
        count = size >> self.shift
        return first if count == 1 else first[:, None] + np.arange(count)

    def narrow(self, size: int) -> None:
        """Make cells at most so large that ``size`` is a multiple of them."""
        while size & ((1 << self.shift) - 1):
            self.shift -= 1
            self.writes.refine(2)
            if self.reads is not None:
                self.reads.refine(2)

    def readers(self) -> Accesses:
        if self.reads is None:
            self.reads = Accesses(PAGE >> self.shift)
        return self.reads
