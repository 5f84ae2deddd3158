"""Work shared by this process and others: each takes the next piece when it is done with one."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")


def share_work(
    items: Sequence[Item],
    here: Callable[[Item], Result],
    elsewhere: Callable[[Item], Result],
    jobs: int,
    *,
    inherit: bool = False,
) -> list[Result]:
    """Return the results of all items in their order, worked out by ``jobs`` processes.

    This process calls ``here`` and begins with the last items, so that it need not wait until the
    others have started; they call ``elsewhere``, which has to be picklable, from the first item on.
    What either raises is raised.

    With ``inherit`` the others begin with all that this process has loaded, where that is safe: so
    neither side may use the GPU.
    """
    helpers = min(jobs, len(items)) - 1
    if helpers < 1:
        return [here(item) for item in items]
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    results: dict[int, Result] = {}
    # a fork copies locks as they are: only where no other thread can hold one
    forks = inherit and sys.platform == "linux" and threading.active_count() == 1
    with ProcessPoolExecutor(helpers, get_context("fork" if forks else "spawn")) as pool:
        try:
            futures = [pool.submit(elsewhere, item) for item in items]
            for index in reversed(range(len(items))):
                if futures[index].cancel():  # nobody has begun it
                    results[index] = here(items[index])
                else:
                    results[index] = futures[index].result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return [results[index] for index in range(len(items))]
