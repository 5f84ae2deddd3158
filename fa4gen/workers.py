"""Worker processes: they may crash or hang alone, and never outlive the process that started them.

All worker processes are made here, by multiprocessing. A worker leaves Ctrl-C to its parent, ends
on SIGTERM like a program that exits, with what it runs, and ends when its parent is gone. A pool of
concurrent.futures ends with the first worker that crashes, and has no limit of time for a task.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import weakref
from collections import deque
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fa4gen.errors import Fa4genError, Problem
from fa4gen.termination import TERMINATED, exit_on_sigterm, signals_held, unblock_signals

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from multiprocessing.connection import Connection

Task = TypeVar("Task")
Result = TypeVar("Result")

GRACE_S = 2.0
"""Seconds that a worker has to end after SIGTERM before it is killed."""
LONGEST_WAIT_S = 86400.0
"""Seconds of one wait; the system takes no number that is much larger."""


@dataclass(frozen=True)
class Done(Generic[Result]):
    """The result of a task's function."""

    result: Result
    worn: bool = False
    """The worker must not be used again: a GPU context that crashed stays broken."""


@dataclass(frozen=True)
class Lost:
    """Why a task has no result: its worker crashed or hung, or its function raised."""

    reason: str
    details: str = ""
    """The traceback of an exception."""
    error: Exception | None = None
    """The exception, where it could be pickled."""

    def problems(self, remedy: str) -> tuple[Problem, ...]:
        """Return the problems to report: messages of an error of ours, else the reason and details.

        ``remedy``: what to do about a worker that crashed, hung, or has a bug.
        """
        if isinstance(self.error, Fa4genError):
            return self.error.problems
        text = self.reason + (f"\n{self.details.rstrip()}" if self.details else "")
        return (Problem(text, remedy),)


class LostWorkerError(RuntimeError):
    """A worker crashed, or raised an exception that could not be pickled."""


class Worker(Generic[Task, Result]):
    """A process that applies one function to tasks, one after the other.

    ``function`` must be importable by name; tasks and results must pickle. The process is spawned,
    since a CUDA context does not survive a fork; with ``inherit`` it is forked with all that this
    process has loaded, where that is safe: neither side may then use the GPU.
    """

    def __init__(self, function: Callable[[Task], Done[Result]], *, inherit: bool = False) -> None:
        # a fork copies locks as they are: only where no other thread can hold one
        forks = inherit and sys.platform == "linux" and threading.active_count() == 1
        context: Any = multiprocessing.get_context("fork" if forks else "spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, function))
        if not forks and sys.platform != "win32":
            from multiprocessing import resource_tracker

            resource_tracker.ensure_running()  # its start would unblock signals
        with signals_held(), _without_main_module():
            self._process.start()
        theirs.close()  # its end is then seen when the worker dies
        # before multiprocessing waits for it at exit; a forked copy of this object does nothing
        weakref.finalize(self, _kill_child, self._process, os.getpid())
        self.task: Task | None = None
        """The task in progress, None when idle."""
        self.deadline = float("inf")

    def begin(self, task: Task, time_limit_s: float = float("inf")) -> None:
        """Start ``task``; ``connection`` is readable when there is an outcome."""
        self.task = task
        self.deadline = time.monotonic() + time_limit_s
        with contextlib.suppress(OSError):  # it died meanwhile: the outcome will show it
            self.connection.send(task)

    def outcome(self) -> Done[Result] | Lost:
        """Wait for the outcome of the task."""
        try:
            answer: Done[Result] | Lost = self.connection.recv()
        except (EOFError, OSError):
            self._process.join(GRACE_S)
            answer = Lost(f"its process ended: {_exit_words(self._process.exitcode)}")
        self.task = None
        return answer

    def terminate(self) -> None:
        """Ask the process to end, also during a task."""
        self._process.terminate()

    def end(self) -> None:
        """End the process: by SIGTERM first, killed after ``GRACE_S``."""
        self._process.terminate()
        self._process.join(GRACE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.connection.close()


def run_tasks(
    function: Callable[[Task], Done[Result]],
    tasks: Iterable[Task],
    *,
    jobs: int,
    time_limit_s: float = float("inf"),
    inherit: bool = False,
) -> Generator[tuple[Task, Done[Result] | Lost]]:
    """Yield every task with its outcome as it finishes; at most ``jobs`` run at a time.

    For ``function`` and ``inherit`` see ``Worker``. When the caller stops iterating, or an
    exception passes through, all workers are ended.
    """
    waiting = deque(tasks)
    workers: list[Worker[Task, Result]] = []
    try:
        while waiting or any(worker.task is not None for worker in workers):
            idle = [worker for worker in workers if worker.task is None]
            while waiting and (idle or len(workers) < jobs):
                if not idle:
                    workers.append(Worker(function, inherit=inherit))
                    idle.append(workers[-1])
                idle.pop().begin(waiting.popleft(), time_limit_s)
            for worker in _ready(workers):
                task = worker.task
                assert task is not None
                if worker.connection.poll():
                    outcome = worker.outcome()
                else:
                    outcome = Lost(f"did not end within {time_limit_s:g} s")
                if isinstance(outcome, Lost) or outcome.worn:
                    workers.remove(worker)
                    worker.end()
                yield task, outcome
    finally:
        end_workers(workers)


def map_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    jobs: int,
    inherit: bool = False,
    cost: Callable[[Task], float] = lambda _: 0.0,
    on_done: Callable[[], object] = lambda: None,
) -> Iterator[Result]:
    """Yield ``function`` of each task in the order of ``tasks``, computed by ``jobs`` processes.

    Tasks of high ``cost`` begin first, so that all processes end together; ``on_done`` is called
    after each task. Raises what the function raises, and LostWorkerError for a process that ended
    early.
    """
    numbered = sorted(enumerate(tasks), key=lambda pair: -cost(pair[1]))
    outcomes = run_tasks(partial(_numbered, function), numbered, jobs=jobs, inherit=inherit)
    ready: dict[int, Result] = {}
    following = 0
    with contextlib.closing(outcomes):
        for (number, _), outcome in outcomes:
            ready[number] = result_of(outcome)
            on_done()
            while following in ready:
                yield ready.pop(following)
                following += 1


def result_of(outcome: Done[Result] | Lost) -> Result:
    """Return the result; raises what a worker's function raised, or LostWorkerError."""
    if isinstance(outcome, Done):
        return outcome.result
    lost = LostWorkerError(f"a worker was lost: {outcome.reason}\n{outcome.details}".strip())
    if outcome.error is None:
        raise lost
    raise outcome.error from lost  # shows where in the worker


def end_workers(workers: Sequence[Worker[Any, Any]]) -> None:
    """End all of ``workers``, in parallel."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.end()


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Hide the main module, which a spawned process would run again: a script may have no guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _ready(workers: Sequence[Worker[Task, Result]]) -> list[Worker[Task, Result]]:
    """Wait for workers that have answered, died or run out of time."""
    busy = [worker for worker in workers if worker.task is not None]
    first = min(worker.deadline for worker in busy)
    timeout = max(0.0, min(first - time.monotonic(), LONGEST_WAIT_S))
    answered = wait([worker.connection for worker in busy], timeout)
    now = time.monotonic()
    return [w for w in busy if w.connection in answered or w.deadline <= now]


def _kill_child(process: Any, parent: int) -> None:
    if os.getpid() == parent:
        process.kill()


def _exit_words(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit status {code}"


def _numbered(function: Callable[[Task], Result], task: tuple[int, Task]) -> Done[Result]:
    return Done(function(task[1]))


# ---- in the worker


def _serve(connection: Connection, function: Callable[[Any], Done[Any]]) -> None:
    """Run tasks until the other side closes the connection."""
    _become_worker()
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            answer: Done[Any] | Lost = function(task)
        except Exception as error:
            answer = _raised(error)
        try:
            connection.send(answer)
        except OSError:  # the parent is gone
            return


def _raised(error: Exception) -> Lost:
    reason, details = f"{type(error).__name__}: {error}", traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # a class may raise anything when pickled
        return Lost(reason, details)
    return Lost(reason, details, error)


def _become_worker() -> None:
    signal.signal(signal.SIGINT, _leave_to_parent)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    unblock_signals()  # one that came meanwhile ends the process silently
    exit_on_sigterm()


def _leave_to_parent(*_: object) -> None:
    """Do nothing; unlike SIG_IGN, programs that the worker runs do not inherit it."""


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(TERMINATED)
