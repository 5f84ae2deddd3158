"""The times at which Python collects garbage: after a launch, and seldom during one.

A launch makes many objects that point to each other, and all of it is garbage at its end. Left to
itself, Python searches everything in the process again and again meanwhile.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OBJECTS: Final = 20_000
"""New objects until the young ones are searched: a long launch must not keep all its garbage."""


class _Collector:
    """The process's collector. Launches of several threads share it: the last one resets it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._launches = 0
        self._thresholds = (0, 0, 0)

    def begin(self) -> None:
        with self._lock:
            if not self._launches:
                first, *others = self._thresholds = gc.get_threshold()
                gc.set_threshold(max(first, _OBJECTS), *others)
            self._launches += 1

    def end(self) -> None:
        with self._lock:
            self._launches -= 1
            if not self._launches:
                gc.set_threshold(*self._thresholds)


_COLLECTOR: Final = _Collector()


@contextmanager
def collected_at_the_end() -> Iterator[None]:
    """Search young objects at the end; nothing is changed where the caller collects no garbage."""
    if not gc.isenabled() or not gc.get_threshold()[0]:
        yield
        return
    _COLLECTOR.begin()
    try:
        yield
    finally:
        _COLLECTOR.end()
        gc.collect(1)
