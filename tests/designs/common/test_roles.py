from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.designs.common.hardware import ARCHITECTURES
from fa4gen.designs.common.kernel_config import RegisterBudget
from fa4gen.designs.common.roles import (
    default_registers,
    nearest_split,
    register_pool,
    registers_at_entry,
    wgmma_registers,
)

HOPPER = ARCHITECTURES["sm_90a"]
consumers = st.integers(1, 3)
budgets = st.integers(3, 32).map(lambda n: 8 * n)
splits = st.builds(RegisterBudget, producer=budgets, consumer=budgets)


@pytest.mark.parametrize(("num_consumers", "registers"), [(1, 256), (2, 168), (3, 128)])
def test_registers_at_entry(num_consumers: int, registers: int) -> None:
    assert registers_at_entry(HOPPER, num_consumers) == registers
    assert register_pool(HOPPER, num_consumers) <= HOPPER.registers


@given(consumers)
def test_the_default_split_works_and_leaves_little(num_consumers: int) -> None:
    split = default_registers(num_consumers)
    assert nearest_split(HOPPER, split, num_consumers) == split
    left = register_pool(HOPPER, num_consumers) - split.total(num_consumers)
    assert split.consumer == 256 or left < 8 * 128 * num_consumers


@given(splits, consumers)
def test_the_nearest_split_can_be_brought_about(split: RegisterBudget, num_consumers: int) -> None:
    near = nearest_split(HOPPER, split, num_consumers)
    assert near.total(num_consumers) <= register_pool(HOPPER, num_consumers)
    assert near.producer <= registers_at_entry(HOPPER, num_consumers) <= near.consumer <= 256
    assert near.producer % 8 == near.consumer % 8 == 0
    assert nearest_split(HOPPER, near, num_consumers) == near


@given(splits, consumers)
def test_a_split_that_works_is_its_own_nearest(split: RegisterBudget, num_consumers: int) -> None:
    works = (
        split.total(num_consumers) <= register_pool(HOPPER, num_consumers)
        and split.producer <= registers_at_entry(HOPPER, num_consumers) <= split.consumer
    )
    assert (nearest_split(HOPPER, split, num_consumers) == split) == works


@pytest.mark.parametrize(
    ("columns", "register_a", "needed"),
    [(208, False, 130), (256, False, 154), (256, True, 158)],  # ptxas's own words, with C7602
)
def test_wgmma_registers(columns: int, register_a: bool, needed: int) -> None:
    assert wgmma_registers(columns, register_a=register_a) == needed
