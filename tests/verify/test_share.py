from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fa4gen.verify.share import share_work


@pytest.fixture(autouse=True)
def importable_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other processes import this module; the installed package comes first."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[2])])


def elsewhere(item: int) -> tuple[int, int]:
    if item < 0:
        raise ValueError(f"{item} is refused")
    time.sleep(0.02)
    return os.getpid(), item


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_results_are_in_order_whoever_worked(jobs: int) -> None:
    items = list(range(3))
    done = []
    results = share_work(
        items, lambda item: (0, item), elsewhere, jobs, on_done=lambda: done.append(1)
    )
    assert [item for _, item in results] == items
    assert len(done) == len(items)
    assert (0, 2) in results or jobs > 1


def test_both_sides_work() -> None:
    def here(item: int) -> tuple[int, int]:
        time.sleep(0.05)
        return 0, item

    workers = {worker for worker, _ in share_work(range(40), here, elsewhere, 2)}
    assert len(workers) == 2
    assert 0 in workers
    assert os.getpid() not in workers


def test_the_longest_work_is_begun_first() -> None:
    begun = []

    def here(item: int) -> tuple[int, int]:
        begun.append(item)
        return 0, item

    results = share_work([1, 3, 2, 9, 0], here, elsewhere, 2, cost=float)
    assert [item for _, item in results] == [1, 3, 2, 9, 0]
    assert begun == sorted(begun, reverse=True)
    assert 9 not in begun


def sleeps(item: float) -> tuple[str, float]:
    time.sleep(item)
    return "elsewhere", item


def test_nobody_holds_work_that_it_has_not_begun() -> None:
    results = share_work([2.0, 0.1, 0.2, 0.3], lambda item: ("here", item), sleeps, 2)
    assert results == [("elsewhere", 2.0), ("here", 0.1), ("here", 0.2), ("here", 0.3)]


LOADED: list[str] = []


def loaded(item: int) -> tuple[str, ...]:
    time.sleep(0.02)
    return tuple(LOADED)


def test_others_inherit_what_was_loaded_where_no_other_thread_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{__name__}.LOADED", ["kernel"])
    end = time.monotonic() + 20
    while threading.active_count() > 1 and time.monotonic() < end:
        time.sleep(0.01)  # threads of the tests before

    def here(item: int) -> tuple[str, ...]:
        time.sleep(0.05)
        return ("here",)

    items = range(60)
    linux = sys.platform == "linux"
    alone = set(share_work(items, here, loaded, 2, inherit=True)) - {("here",)}
    assert alone == ({("kernel",)} if linux else {()})
    assert set(share_work(items, here, loaded, 2)) - {("here",)} <= {()}
    with ThreadPoolExecutor(1) as pool:
        over = threading.Event()
        pool.submit(over.wait)
        assert set(share_work(items, here, loaded, 2, inherit=True)) - {("here",)} <= {()}
        over.set()


def test_one_process_does_without_others() -> None:
    assert share_work([-1, 2], lambda item: item * 2, elsewhere, 1) == [-2, 4]
    assert share_work([], elsewhere, elsewhere, 4) == []


def test_an_error_elsewhere_is_raised() -> None:
    with pytest.raises(ValueError, match="-3 is refused"):
        share_work([-3] * 20, elsewhere, elsewhere, 2)


def test_an_error_here_is_raised() -> None:
    def here(item: int) -> tuple[int, int]:
        raise OSError("not here")

    with pytest.raises(OSError, match="not here"):
        share_work(list(range(20)), here, elsewhere, 2)
