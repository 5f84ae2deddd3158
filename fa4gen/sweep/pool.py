"""Worker processes that may crash or hang without affecting anything else."""

from __future__ import annotations

import contextlib
import signal
import time
import traceback
from collections import deque
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

Task = TypeVar("Task")
Result = TypeVar("Result")

GRACE_S = 5.0
"""A worker that has not ended this long after it was asked to is killed."""


@dataclass(frozen=True)
class Done(Generic[Result]):
    """What a task's function returned."""

    result: Result
    worn: bool = False
    """The worker must not be used again: a GPU context that crashed stays broken."""


@dataclass(frozen=True)
class Lost:
    """Why a task has no result: its worker crashed or hung, or its function raised."""

    reason: str
    details: str = ""
    """The traceback of an exception."""


@dataclass
class _Worker(Generic[Task]):
    process: SpawnProcess
    connection: Connection
    task: Task | None = None
    deadline: float = 0.0


def run_tasks(
    function: Callable[[Task], Done[Result]],
    tasks: Iterable[Task],
    *,
    jobs: int,
    time_limit_s: float,
) -> Iterator[tuple[Task, Done[Result] | Lost]]:
    """Yield every task with its result as it finishes; at most ``jobs`` run at a time.

    ``function`` must be importable by name, tasks and results must pickle. Workers are started anew
    rather than forked, since a CUDA context does not survive a fork. When the caller stops
    iterating, or an exception passes through, all workers are ended.
    """
    waiting = deque(tasks)
    workers: list[_Worker[Task]] = []
    try:
        while waiting or any(worker.task is not None for worker in workers):
            _hand_out(workers, waiting, function, jobs, time_limit_s)
            for worker in _ready(workers):
                task = worker.task
                assert task is not None
                outcome: Done[Result] | Lost = _outcome(worker, time_limit_s)
                worker.task = None
                if isinstance(outcome, Lost) or outcome.worn:
                    workers.remove(worker)
                    _end(worker)
                yield task, outcome
    finally:
        for worker in workers:
            _end(worker)


def _hand_out(
    workers: list[_Worker[Task]],
    waiting: deque[Task],
    function: Callable[[Task], Done[Any]],
    jobs: int,
    time_limit_s: float,
) -> None:
    idle = [worker for worker in workers if worker.task is None]
    while waiting and (idle or len(workers) < jobs):
        if idle:
            worker = idle.pop()
        else:
            worker = _start(function)
            workers.append(worker)
        worker.task = waiting.popleft()
        worker.deadline = time.monotonic() + time_limit_s
        with contextlib.suppress(OSError):  # it died meanwhile: the outcome will show it
            worker.connection.send(worker.task)


def _start(function: Callable[[Task], Done[Any]]) -> _Worker[Task]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, function), daemon=True)
    process.start()
    theirs.close()  # so that its end is seen when the worker dies
    return _Worker(process, ours)


def _ready(workers: list[_Worker[Task]]) -> list[_Worker[Task]]:
    """Wait for workers that have answered, died or run out of time."""
    busy = [worker for worker in workers if worker.task is not None]
    timeout = max(0.0, min(worker.deadline for worker in busy) - time.monotonic())
    answered = wait([worker.connection for worker in busy], timeout)
    now = time.monotonic()
    return [w for w in busy if w.connection in answered or w.deadline <= now]


def _outcome(worker: _Worker[Task], time_limit_s: float) -> Done[Result] | Lost:
    if not worker.connection.poll():
        return Lost(f"did not end within {time_limit_s:g} s")
    try:
        answer: Done[Result] | Lost = worker.connection.recv()
    except (EOFError, OSError):
        worker.process.join(GRACE_S)
        return Lost(f"its process ended: {_exit_words(worker.process.exitcode)}")
    return answer


def _exit_words(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}"


def _end(worker: _Worker[Any]) -> None:
    worker.connection.close()
    if worker.task is not None or worker.process.is_alive():
        worker.process.terminate()
        worker.process.join(GRACE_S)
        if worker.process.is_alive():
            worker.process.kill()
    worker.process.join()
    worker.process.close()


def _serve(connection: Connection, function: Callable[[Any], Done[Any]]) -> None:
    """Run tasks until the other side closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends its workers
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            answer: Done[Any] | Lost = function(task)
        except Exception as error:
            answer = Lost(f"{type(error).__name__}: {error}", traceback.format_exc())
        try:
            connection.send(answer)
        except OSError:  # the parent is gone
            return
