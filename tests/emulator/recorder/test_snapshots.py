"""A launch's changes go back to the memory that it shares with the program, nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator.errors import OutOfMemoryError
from fa4gen.emulator.recorder.snapshots import take
from fa4gen.emulator.state.budget import Budget, default_budget


def test_only_what_the_launch_changed_is_written() -> None:
    window = np.zeros(4096, np.uint8)
    window[:8] = 7
    snapshot = take(window, 0x1000, "x", default_budget())
    array = snapshot.memory.array
    assert (snapshot.memory.address, array[:9].tolist()) == (0x1000, 8 * [7] + [0])
    array[[1, 4, 400]] = 9
    array[0] = 7  # as it was
    window[[0, 2, 3, 2000]] = 5  # another thread of the program, meanwhile
    assert snapshot.put_back() == [(0x1001, 0x1005), (0x1190, 0x1191)]
    assert window[:8].tolist() == [5, 9, 5, 5, 9, 7, 7, 7]
    assert (window[400], window[2000]) == (9, 5)
    assert np.count_nonzero(window) == 10


def test_changes_are_joined_over_large_memory() -> None:
    size = 3 << 20
    window = np.zeros(size, np.uint8)
    snapshot = take(window, 0, "x", default_budget())
    places = [(1 << 20) - 200, (1 << 20) + 55, (1 << 20) + 311, size - 1]
    snapshot.memory.array[places] = 1
    assert snapshot.put_back() == [
        (places[0], places[1] + 1), (places[2], places[2] + 1), (places[3], size),
    ]  # fmt: skip
    assert np.flatnonzero(window).tolist() == places
    assert take(window, 0, "x", default_budget()).put_back() == []


def test_a_copy_above_the_limit_of_memory_is_refused() -> None:
    with pytest.raises(OutOfMemoryError, match="its limit is 1 MiB"):
        take(np.ones(4096, np.uint8), 0, "x", Budget(1 << 20))
