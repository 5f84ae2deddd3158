"""The executors of tasks: worker processes of this machine, or a cluster of dask's."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from fa4gen.errors import ConfigError, MissingCapabilityError, Problem
from fa4gen.version import __version__
from fa4gen.workers import Done, Lost, run_tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DASK = "dask:"
CONNECT_S = 15
_ALONE = threading.Lock()
"""A task has its process to itself: neither the emulator nor a GPU's timing shares one."""


class Executor(Protocol):
    """Runs a function on tasks, and yields each with its outcome as it finishes."""

    def __call__(
        self, function: Callable[[Any], Done[Any]], tasks: Iterable[Any]
    ) -> Iterator[tuple[Any, Done[Any] | Lost]]:
        """Run ``function``, importable by name, on each of ``tasks``; both pickle."""


def executor_for(text: str, *, jobs: int, time_limit_s: float = float("inf")) -> Executor:
    """Return the executor of ``--executor``: "local", or "dask:ADDRESS" of a running scheduler.

    Raises ConfigError for another text, and MissingCapabilityError where dask.distributed is not
    installed or does not answer.
    """
    if text == "local":
        return partial(run_tasks, jobs=jobs, time_limit_s=time_limit_s)
    if not text.startswith(DASK) or text == DASK:
        raise ConfigError(
            Problem(
                f"--executor {text!r} is neither local nor dask:ADDRESS",
                "Give the scheduler's address: --executor dask:tcp://10.0.0.1:8786",
            )
        )
    return partial(_run_on_dask, _connect(text.removeprefix(DASK)))


def _connect(address: str) -> Any:
    """Return a client of the scheduler at ``address``, whose workers have this fa4gen."""
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingCapabilityError(
            Problem("dask.distributed is not installed", "pip install 'fa4gen[dask]'")
        ) from error
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise MissingCapabilityError(
            Problem(
                f"no scheduler of dask answers at {address}: {error}",
                "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`.",
            )
        ) from error
    versions = client.run(_version)
    others = sorted(set(versions.values()) - {__version__})
    if others or not versions:
        client.close()
        what = f"workers have fa4gen {', '.join(others)}, not {__version__}" if others else ""
        raise MissingCapabilityError(
            Problem(
                what or f"the scheduler at {address} has no worker",
                "Start workers with `dask worker ADDRESS` where this version is installed.",
            )
        )
    return client


def _run_on_dask(
    client: Any, function: Callable[[Any], Done[Any]], tasks: Iterable[Any]
) -> Iterator[tuple[Any, Done[Any] | Lost]]:
    """Yield outcomes as workers send them; the tasks of a worker that is lost are run again."""
    from distributed import as_completed

    run = uuid4().hex
    futures = {
        client.submit(_call, function, task, pure=False, key=f"fa4gen-{run}-{number}"): task
        for number, task in enumerate(tasks)
    }
    try:
        for future in as_completed([*futures], loop=client.loop):
            yield futures.pop(future), _outcome(client, future)
    finally:
        client.cancel(list(futures))
        client.close()


def _outcome(client: Any, future: Any) -> Done[Any] | Lost:
    try:
        worker, outcome = future.result()
        future.release()  # a worker that holds the only copy may be lost without a loss
    except Exception as error:  # the scheduler gave the task up, or the function raised
        return Lost(f"{type(error).__name__}: {error}", error=error)
    if isinstance(outcome, Done) and outcome.worn:
        client.restart_workers([worker], raise_for_error=False)
    result: Done[Any] | Lost = outcome
    return result


# ---- on the workers


def _version() -> str:
    return __version__


def _call(function: Callable[[Any], Done[Any]], task: Any) -> tuple[str, Done[Any]]:
    from distributed import get_worker

    with _ALONE:
        return get_worker().address, function(task)
