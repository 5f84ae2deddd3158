"""SIGTERM and SIGINT end a process wherever they meet it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal, time, weakref
from fa4gen.termination import exit_on_sigterm
class Thing:
    {method}
exit_on_sigterm()
signal.signal(signal.SIGINT, signal.default_int_handler)
thing = Thing()
callback = weakref.ref(thing, lambda _: {call})
try:
    del thing
    time.sleep(60)
finally:
    print("cleaned")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to speak of")
@pytest.mark.parametrize("finaliser", [False, True])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -2)])
def test_a_signal_amid_a_finaliser_is_not_lost(
    number: signal.Signals, status: int, finaliser: bool
) -> None:
    """Python prints and forgets what is raised there; a worker lived on so, and ignored SIGTERM."""
    sent = f"signal.raise_signal({int(number)})"
    method = f"def __del__(self): {sent}" if finaliser else "pass"
    text = PROGRAM.format(method=method, call="None" if finaliser else sent)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == status
    assert done.stdout == "cleaned\n"
    assert "ignored" not in done.stderr
