"""SIGTERM and SIGINT in a command and its workers; light: every command imports it.

Neither raises anything amid an import: an extension module that is half imported prints a traceback
of its own and turns the exception into another, as NumPy does.
"""

from __future__ import annotations

import atexit
import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

Handler = Callable[[int, FrameType | None], object]

TERMINATED = 143
"""Exit status after SIGTERM, as shells have it."""
HELD = {signal.SIGINT, signal.SIGTERM}
LATER_S = 0.01
"""After which an exception is raised that a finaliser or an import was in the way of."""


def exit_on_sigterm() -> None:
    """Let SIGTERM raise SystemExit, so that files are removed and child processes are ended."""
    signal.signal(signal.SIGTERM, _outside_imports(_exit))
    sys.unraisablehook = _raise_later


def raise_on_sigint() -> None:
    """Let SIGINT raise KeyboardInterrupt."""
    signal.signal(signal.SIGINT, _outside_imports(signal.default_int_handler))


def _outside_imports(handler: Handler) -> Handler:
    """Return a handler that waits until no module is being imported."""

    def handle(number: int, frame: FrameType | None) -> None:
        if hasattr(signal, "setitimer") and _is_importing(frame):
            _call_soon(lambda _, later: handle(number, later))
        else:
            handler(number, frame)

    return handle


def _call_soon(handler: Handler) -> None:
    """Call ``handler`` with what runs in a moment, unless the program ends before."""
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, LATER_S)
    # at its end Python takes its handlers away, and the timer would kill the process
    atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib."):
            return True
        frame = frame.f_back
    return False


def _exit(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    sys.exit(TERMINATED)


def _raise_later(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise what a signal raised in a finaliser again: Python passes nothing on from there."""
    error = unraisable.exc_value
    main = threading.current_thread() is threading.main_thread()
    if main and isinstance(error, (SystemExit, KeyboardInterrupt)) and hasattr(signal, "setitimer"):
        kind, arguments = type(error), error.args

        def again(*_: object) -> None:
            raise kind(*arguments)

        _call_soon(again)
    else:
        sys.__unraisablehook__(unraisable)


def unblock_signals() -> None:
    """Take Ctrl-C and SIGTERM again, which the parent blocked: see ``signals_held``."""
    if hasattr(signal, "pthread_sigmask"):
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
    has_masks = hasattr(signal, "pthread_sigmask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, HELD) if has_masks else None
    try:
        yield
    finally:
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
