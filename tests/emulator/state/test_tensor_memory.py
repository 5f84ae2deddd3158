from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.emulator.state.tensor_memory import COLUMNS, LANES, TensorMemory, split_address

WARPGROUP: Any = None
SITE: Any = SimpleNamespace(where="PTX line 1")


def allocate(memory: TensorMemory, columns: int):
    return memory.try_allocate(columns, WARPGROUP, None, SITE)


def test_an_address_is_a_lane_and_a_column() -> None:
    assert split_address(0x0030_0041) == (48, 65)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([32, 64, 128, 256, 512])), max_size=40))
def test_columns_belong_to_one_allocation_at_a_time(steps: list[tuple[bool, int]]) -> None:
    """Whatever is allocated and freed, nobody shares, and a refusal means there is no gap."""
    memory = TensorMemory()
    held: list[Any] = []
    for frees, columns in steps:
        if frees and held:
            memory.free(held.pop(columns % len(held)))
        else:
            one = allocate(memory, columns)
            if one is not None:
                held.append(one)
            else:
                free = "".join("x" if taken else "." for taken in memory.allocated)
                assert "." * columns not in free
        owners = np.zeros(COLUMNS, int)
        for one in held:
            owners[one.first : one.first + one.columns] += 1
            assert one.first % 32 == 0
        assert (owners == memory.allocated).all()


def test_fresh_columns_hold_nothing() -> None:
    memory = TensorMemory()
    one = allocate(memory, 64)
    columns = slice(one.first, one.first + 64)
    everything = slice(0, LANES)
    assert not memory.initialised(everything, columns)
    memory.mark(everything, columns)
    assert memory.initialised(everything, columns)
    memory.free(one)
    again = allocate(memory, 32)
    assert not memory.initialised(everything, slice(again.first, again.first + 32))


@pytest.mark.parametrize(
    ("first", "stop", "there"),
    [(448, 512, True), (447, 449, False), (-1, 3, False), (500, 520, False)],
)
def test_which_columns_are_there(first: int, stop: int, there: bool) -> None:
    memory = TensorMemory()
    allocate(memory, 64)
    assert memory.holds(first, stop) is there
