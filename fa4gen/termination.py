"""How a command and its workers handle SIGTERM; light, since every command imports it."""

from __future__ import annotations

import signal
import sys

TERMINATED = 143
"""Exit status after SIGTERM, as shells have it."""


def exit_on_sigterm() -> None:
    """Let SIGTERM raise SystemExit, so that files are removed and child processes are ended."""
    signal.signal(signal.SIGTERM, _exit)


def _exit(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    sys.exit(TERMINATED)
