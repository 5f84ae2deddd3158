"""When Python looks for garbage in cycles: after a launch, and seldom during one.

A launch makes many objects that point to each other, and all of it is garbage at its end. Left to
itself, Python searches everything in the process again and again meanwhile.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_OBJECTS: Final = 20_000
"""New objects until the young ones are searched: a long launch must not keep all its garbage."""


@contextmanager
def collected_at_the_end() -> Iterator[None]:
    """Search young objects at the end; nothing is changed where the caller collects no garbage."""
    first, *others = gc.get_threshold()
    if not gc.isenabled() or not first:
        yield
        return
    gc.set_threshold(max(first, _OBJECTS), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
        gc.collect(1)
