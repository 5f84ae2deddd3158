"""Global memory of arrays with gaps: only what they use takes memory."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from fa4gen.emulator.errors import LaunchError
from fa4gen.emulator.state.budget import Budget, process_bytes
from fa4gen.emulator.state.memory import GLOBAL_BASE, GlobalMemory

TERA = 1 << 40
ROOM = 256 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="mappings of no memory are those of Linux")
def test_gaps_take_no_memory() -> None:
    memory = GlobalMemory()
    memory.budget = Budget(process_bytes() + ROOM)
    start = memory.reserve(4 * TERA, "far", elements=2)
    before = process_bytes()
    memory.seal()
    assert process_bytes() - before < ROOM
    ends = np.ndarray((2,), np.uint8, memory.data.data, start - GLOBAL_BASE, (4 * TERA - 1,))
    assert ends.tolist() == [0, 0]
    ends[:] = 7
    assert memory.data[start - GLOBAL_BASE + 4 * TERA - 1] == 7
    assert process_bytes() - before < ROOM


def test_an_array_without_gaps_is_held_against_the_limit() -> None:
    memory = GlobalMemory()
    memory.budget = Budget(process_bytes() + ROOM)
    memory.reserve(4 * TERA, "whole")
    with pytest.raises(LaunchError, match="4 TiB"):
        memory.seal()


def test_arrays_that_overlap_are_counted_once_at_most() -> None:
    memory = GlobalMemory()
    memory.budget = Budget(process_bytes() + ROOM)
    memory.reserve(1 << 20, "shared", elements=1 << 40)
    memory.seal()
    assert memory.data.size < ROOM
