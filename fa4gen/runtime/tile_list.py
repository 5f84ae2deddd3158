"""Memory of launches: lists of tiles that one launch writes and the next reads, partial results.

It holds zeros at first: tickets of partial results are zero before and after every launch. As with
the counters, launches that may run at the same time need memory of their own, so each stream has
one, and each captured graph too.
"""

from __future__ import annotations

import threading
from typing import Any

from fa4gen.errors import ArgumentError, Problem
from fa4gen.runtime.tile_counter import NO_CAPTURE, stream_key, zeros

ENTRY_BYTES = 32
"""The bytes of a tile, and of the entry before the first one."""
LEAST_BYTES = 1 << 20
"""The least bytes of a buffer, from which several lists are cut: a capture, which may not allocate,
finds room."""
SPARE_LISTS = 4
"""Lists of the size of the last one that a new buffer has room for."""


class TileLists:
    """The lists on one GPU: the one that is current when the first list is requested."""

    def __init__(self, words: str) -> None:
        """Keep the use of the memory, in the words of an error."""
        self._words = words
        self._lists: dict[tuple[int, int], tuple[int, int]] = {}
        self._buffers: list[Any] = []
        self._next = self._end = 0
        self._lock = threading.Lock()

    def address(self, stream: int, size: int) -> int:
        """Return the device address of a list of ``size`` bytes for launches on ``stream``.

        Raises ArgumentError when memory would be needed while a graph is being captured.
        """
        key = stream_key(stream)
        with self._lock:
            address, room = self._lists.get(key, (0, 0))
            if room < size or not room:
                # Earlier launches may still use the smaller list: it stays.
                room = max(ENTRY_BYTES, 1 << max(0, size - 1).bit_length())
                address = self._cut(room, capturing=key[1] != NO_CAPTURE)
                self._lists[key] = address, room
            return address

    def _cut(self, size: int, *, capturing: bool) -> int:
        if self._end - self._next < size:
            if capturing:
                raise ArgumentError(
                    Problem(
                        f"no memory is left for {self._words} inside a graph capture",
                        remedy="call the kernel once with arrays of these sizes on this GPU before "
                        "the capture begins",
                    )
                )
            buffer = zeros(max(LEAST_BYTES, SPARE_LISTS * size))
            self._buffers.append(buffer)
            self._next = int(buffer.data.ptr)
            self._end = self._next + buffer.nbytes
        address = self._next
        self._next += size
        return address
