"""SIGTERM and SIGINT end a process wherever they meet it."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import signal, time, weakref
from fa4gen.termination import exit_on_sigterm, raise_on_sigint
class Thing:
    {method}
exit_on_sigterm()
raise_on_sigint()
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


MODULE = """
import signal
try:
    signal.raise_signal({number})
except BaseException:
    raise ImportError("half imported") from None
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to speak of")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, -2)])
def test_a_signal_amid_an_import_waits_for_its_end(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """NumPy's extension module ends in an ImportError when it is interrupted."""
    (tmp_path / "module.py").write_text(MODULE.format(number=int(number)))
    text = """
import sys, time
from fa4gen.termination import exit_on_sigterm, raise_on_sigint
sys.path.insert(0, sys.argv[1])
exit_on_sigterm()
raise_on_sigint()
try:
    import module
    print("imported", flush=True)
    time.sleep(60)
finally:
    print("cleaned")
"""
    done = subprocess.run(
        [sys.executable, "-c", text, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == status
    assert done.stdout.splitlines()[-1] == "cleaned"
    assert "half imported" not in done.stderr
