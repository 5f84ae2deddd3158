"""Work shared with other processes: each takes the next item when it is done with one."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fa4gen.workers import Done, Lost, Worker

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
    on_done: Callable[[], None] = lambda: None,
) -> list[Result]:
    """Return the results of all items in their order, computed by ``jobs`` processes.

    This process calls ``here``, the others call ``elsewhere``, which has to be picklable.
    Exceptions of either are raised. Items of high ``cost`` are begun first, so that all end
    together.

    With ``inherit`` the others begin with all that this process has loaded, where that is safe: so
    neither side may use the GPU. ``on_done`` is called after each item, by one thread at a time.
    """
    helpers = min(jobs, len(items)) - 1
    if helpers < 1:
        alone = []
        for item in items:
            alone.append(here(item))
            on_done()
        return alone
    from fa4gen.workers import Worker, end_workers, result_of

    order = list(range(len(items)))
    if cost is not None:
        order.sort(key=lambda index: -cost(items[index]))
    queue: _Queue[Item, Result] = _Queue(items, order, on_done)
    workers: list[Worker[Item, Result]] = []
    threads: list[threading.Thread] = []
    results: dict[int, Result] = {}
    try:
        for _ in range(helpers):  # all before the first thread: see ``inherit``
            workers.append(Worker(partial(_done, elsewhere), inherit=inherit))
        for worker in workers:  # theirs are the first items, since they may have to start first
            threads.append(threading.Thread(target=queue.feed, args=[worker, queue.take()]))
            threads[-1].start()
        while (index := queue.take()) is not None:
            results[index] = here(items[index])
            queue.count()
        for thread in threads:
            thread.join()
    finally:
        queue.close()
        end_workers(workers)
        for thread in threads:
            thread.join()
    results |= {index: result_of(outcome) for index, outcome in queue.outcomes.items()}
    return [results[index] for index in range(len(items))]


def _done(function: Callable[[Item], Result], item: Item) -> Done[Result]:
    from fa4gen.workers import Done

    return Done(function(item))


class _Queue(Generic[Item, Result]):
    """The items that no process has begun."""

    def __init__(
        self, items: Sequence[Item], order: Sequence[int], on_done: Callable[[], None]
    ) -> None:
        self._items = items
        self._left = deque(order)
        self._on_done = on_done
        self._lock = threading.Lock()
        self.outcomes: dict[int, Done[Result] | Lost] = {}
        """From the workers, by item."""

    def take(self) -> int | None:
        """Return the next item to work on, None when there is no more."""
        with self._lock:
            return self._left.popleft() if self._left else None

    def feed(self, worker: Worker[Item, Result], index: int | None) -> None:
        """Let ``worker`` work on item ``index`` and others until there is no more."""
        from fa4gen.workers import Lost

        while index is not None:
            worker.begin(self._items[index])
            self.outcomes[index] = outcome = worker.outcome()
            self.count()
            if isinstance(outcome, Lost):
                self.close()
            index = self.take()

    def count(self) -> None:
        """Say that an item is done."""
        with self._lock:
            self._on_done()

    def close(self) -> None:
        """Prevent all processes from beginning another item."""
        with self._lock:
            self._left.clear()
