"""How a command and its workers handle SIGTERM; light, since every command imports it."""

from __future__ import annotations

import signal
import sys
import threading

TERMINATED = 143
"""Exit status after SIGTERM, as shells have it."""
LATER_S = 0.01
"""After which an exception is raised again that a finaliser met."""


def exit_on_sigterm() -> None:
    """Let SIGTERM raise SystemExit, so that files are removed and child processes are ended."""
    signal.signal(signal.SIGTERM, _exit)
    sys.unraisablehook = _raise_later


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

        signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, LATER_S)
    else:
        sys.__unraisablehook__(unraisable)
