"""The objects of a launch are freed with it, and Python's own collector is as it was."""

from __future__ import annotations

import gc

import numpy as np

from fa4gen.emulator.state.garbage import collected_at_the_end
from fa4gen.emulator.state.machine import Warpgroup
from tests.emulator.kernel import kernel, run


def warpgroups() -> int:
    return sum(isinstance(one, Warpgroup) for one in gc.get_objects())


def test_a_launch_is_freed_at_its_end() -> None:
    gc.collect()
    before, thresholds = warpgroups(), gc.get_threshold()
    run(kernel("st.global.u32 [%d0], 7;"), np.zeros(1, np.uint32), block=256)
    assert warpgroups() == before
    assert gc.get_threshold() == thresholds


def test_garbage_is_searched_seldom_meanwhile() -> None:
    searched = []

    def note(phase: str, facts: dict[str, int]) -> None:
        searched.append(facts["generation"])

    kept: list[list[int]] = []
    gc.callbacks.append(note)
    try:
        with collected_at_the_end():
            kept += [[] for _ in range(10_000)]
            assert not searched
            kept += [[] for _ in range(30_000)]
            assert searched  # a long launch does not keep it all
    finally:
        gc.callbacks.remove(note)
    assert searched[-1] == 1


def test_a_caller_without_collections_stays_so() -> None:
    gc.disable()
    try:
        before = gc.get_stats()
        with collected_at_the_end():
            assert gc.get_threshold()[0] < 20_000
        assert gc.get_stats() == before
    finally:
        gc.enable()


def test_launches_of_several_threads_leave_the_collector_as_it_was() -> None:
    before = gc.get_threshold()
    first, second = collected_at_the_end(), collected_at_the_end()
    with first:
        second.__enter__()
    assert gc.get_threshold()[0] == 20_000  # the other one still runs
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before
