"""How a worker process starts: as a copy of this process, or as a new Python.

Multiprocessing's own way to start a new Python prints a traceback in it when this process is killed
just then. It is used on Windows only, where nothing else can pass on handles.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Serve = Callable[[Connection, Callable[[Any], Any], Callable[[], Any]], None]
    """What a worker runs: with its end of the connection, the function that it applies to tasks,
    and a function that returns when the parent has ended."""

HELD = {signal.SIGINT, signal.SIGTERM}
_HAS_MASKS = hasattr(signal, "pthread_sigmask")
_START = """
import sys
sys.path[:] = {path!r}
from fa4gen.worker_process import serve_spawned
serve_spawned({connection}, {life})
"""


class Process(Protocol):
    """What multiprocessing's processes and ``_Spawned`` have in common."""

    @property
    def exitcode(self) -> int | None:
        """Exit status, the signal's number below 0; None while it runs."""

    def is_alive(self) -> bool:
        """Whether it runs."""

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, at most ``timeout`` seconds."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""


def fork(serve: Serve, function: Callable[[Any], Any]) -> tuple[Process, Connection]:
    """Start ``serve`` in a copy of this process; return it and this end of its connection."""
    return _multiprocess("fork", serve, function)


def spawn(serve: Serve, function: Callable[[Any], Any]) -> tuple[Process, Connection]:
    """Start ``serve`` in a new Python, which must find it and ``function`` by name."""
    if sys.platform == "win32":
        return _multiprocess("spawn", serve, function)
    what = pickle.dumps((serve, function))
    ours, theirs = multiprocessing.Pipe()
    with theirs:  # closed here, so that its end is seen when the worker dies
        process = _Spawned(theirs.fileno())
    with contextlib.suppress(OSError):  # it died meanwhile: the outcome will show it
        ours.send_bytes(what)
    return process, ours


class _Spawned:
    """A new Python in ``serve_spawned``."""

    def __init__(self, connection: int) -> None:
        life, self._life = os.pipe()  # nothing is written; closed when this process has ended
        code = _START.format(path=sys.path, connection=connection, life=life)
        options = [f"-W{option}" for option in sys.warnoptions]
        files = (connection, life)
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-P", *options, "-c", code],
                stdin=None if 0 in files else subprocess.DEVNULL,  # this process had it closed
                pass_fds=files,
            )
        except BaseException:
            os.close(self._life)
            raise
        finally:
            os.close(life)

    @property
    def exitcode(self) -> int | None:
        return self._popen.poll()

    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def join(self, timeout: float | None = None) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout)
        if not self.is_alive() and self._life >= 0:
            os.close(self._life)
            self._life = -1

    def terminate(self) -> None:
        self._popen.terminate()

    def kill(self) -> None:
        self._popen.kill()


def serve_spawned(connection_number: int, life: int) -> None:
    """Serve in the new Python, which got these two files from its parent."""
    with Connection(connection_number) as connection:
        try:
            serve, function = connection.recv()
        except (EOFError, OSError):  # the parent is gone
            return
        serve(connection, function, lambda: os.read(life, 1))


def _multiprocess(
    method: str, serve: Serve, function: Callable[[Any], Any]
) -> tuple[Process, Connection]:
    context: Any = get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve_multiprocess, args=(serve, theirs, function))
    process.start()
    theirs.close()
    return process, ours


def _serve_multiprocess(
    serve: Serve, connection: Connection, function: Callable[[Any], Any]
) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    serve(connection, function, parent.join)


def unblock_signals() -> None:
    """Take Ctrl-C and SIGTERM again, which the parent blocked: see ``signals_held``."""
    if _HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Block Ctrl-C and SIGTERM within the block, also for processes that it starts.

    Without this a worker that is still importing would print a traceback, and a parent that ends
    would miss one that is half started. Workers unblock them once they are ready.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    # Other threads may take a signal that this one blocks; Python handles it here nevertheless.
    handlers = {n: signal.signal(n, lambda number, _: came.append(number)) for n in HELD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HELD) if _HAS_MASKS else None
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
