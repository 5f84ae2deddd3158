"""Work shared with other processes: each takes the next item when it is done with one."""

from __future__ import annotations

import sys
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")


def share_work(
    items: Sequence[Item],
    here: Callable[[Item], Result],
    elsewhere: Callable[[Item], Result],
    jobs: int,
    *,
    cost: Callable[[Item], float] | None = None,
    inherit: bool = False,
) -> list[Result]:
    """Return the results of all items in their order, computed by ``jobs`` processes.

    This process calls ``here``, the others call ``elsewhere``, which has to be picklable.
    Exceptions of either are raised. Items of high ``cost`` are begun first, so that all end
    together.

    With ``inherit`` the others begin with all that this process has loaded, where that is safe: so
    neither side may use the GPU.
    """
    helpers = min(jobs, len(items)) - 1
    if helpers < 1:
        return [here(item) for item in items]
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    order = list(range(len(items)))
    if cost is not None:
        order.sort(key=lambda index: -cost(items[index]))
    results: dict[int, Result] = {}
    # a fork copies locks as they are: only where no other thread can hold one
    forks = inherit and sys.platform == "linux" and threading.active_count() == 1
    with ProcessPoolExecutor(helpers, get_context("fork" if forks else "spawn")) as pool:
        queue = _Queue(order, lambda index: pool.submit(elsewhere, items[index]))
        try:
            for _ in range(helpers):
                queue.send()
            while (index := queue.take()) is not None:
                results[index] = here(items[index])
            for index, future in queue.sent.items():
                results[index] = future.result()
        finally:
            queue.close()
            pool.shutdown(wait=False, cancel_futures=True)
    return [results[index] for index in range(len(items))]


class _Queue:
    """What nobody has begun. A pool would take more than it works on, and end later than we."""

    def __init__(self, order: Sequence[int], submit: Callable[[int], Future[Any]]) -> None:
        self._left = deque(order)
        self._submit = submit
        self._lock = threading.Lock()
        self.sent: dict[int, Future[Any]] = {}
        """By item; complete once ``take`` has returned None."""

    def take(self) -> int | None:
        """Return the next item for this process."""
        with self._lock:
            return self._left.popleft() if self._left else None

    def send(self) -> None:
        """Give the next item to the pool, and another one when that is done."""
        with self._lock:
            if not self._left:
                return
            index = self._left.popleft()
            future = self.sent[index] = self._submit(index)
        future.add_done_callback(self._done)

    def close(self) -> None:
        """Nothing more is sent."""
        with self._lock:
            self._left.clear()

    def _done(self, future: Future[Any]) -> None:
        if future.cancelled() or future.exception() is not None:
            self.close()  # it is raised when this process is done with its item
        else:
            self.send()
