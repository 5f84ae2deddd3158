"""How a command and its workers handle SIGTERM and SIGINT; light: every command imports it.

Neither raises anything amid an import: an extension module that is half imported prints a traceback
of its own and turns the exception into another, as NumPy does.
"""

from __future__ import annotations

import atexit
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

Handler = Callable[[int, FrameType | None], object]

TERMINATED = 143
"""Exit status after SIGTERM, as shells have it."""
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
