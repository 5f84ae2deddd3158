"""The line of progress on a real terminal: a pty."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen
from fa4gen.resources import data_root

fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")

ROOT = Path(fa4gen.__file__).parent.parent
BAR = """
import time
from fa4gen.cli.progress import progress
from fa4gen.cli.streams import printable_streams
with printable_streams(), progress(3, "kernels") as bar:
    time.sleep(0.2)
    bar.part(1, 4)
    time.sleep(0.3)
    bar.advance("d64: [1] problem")
    time.sleep(0.3)
    bar.advance()
    time.sleep(0.3)
print("result")
"""
SWEEP = """
base: {config}
matrix:
  mask: [none, causal]
"""


def on_terminal(
    args: list[str], cwd: Path, *, columns: int = 100, **environment: str
) -> tuple[str, str]:
    """Run a command whose stderr is a terminal; return its stdout and what the terminal got."""
    import struct

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    env |= {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment}
    with subprocess.Popen(
        [sys.executable, *args], stdout=subprocess.PIPE, stderr=theirs, cwd=cwd, env=env
    ) as process:
        os.close(theirs)
        got = b""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:  # Linux: the other side is closed
                break
            if not data:
                break
            got += data
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0, got.decode()
    return out.decode(), got.decode()


def test_a_line_with_the_time_left(tmp_path: Path) -> None:
    out, got = on_terminal(["-c", BAR], tmp_path)
    assert out == "result\n"
    assert "\x1b" not in got
    shown = re.split(r"[\r\n]+", got)
    assert any(
        line.startswith("0 of 3 kernels done, 1 of 4 parts of the next; 0:") for line in shown
    )
    assert any(re.match(r"2 of 3 kernels done; .*, left: 0:00:0[01]$", line) for line in shown)
    assert "d64: [1] problem" in shown
    assert shown[-1].strip() == ""  # the line is gone at the end


def test_a_narrow_terminal_has_one_line(tmp_path: Path) -> None:
    _, got = on_terminal(["-c", BAR], tmp_path, columns=20)
    lines = re.split(r"[\r\n]+", got)
    assert any("2 of 3" in line for line in lines)
    assert max(len(line) for line in lines) <= 20


@pytest.mark.parametrize(("asked", "drawn"), [("text", True), ("json", False)])
def test_a_sweep_shows_it_unless_json_is_asked_for(asked: str, drawn: bool, tmp_path: Path) -> None:
    config = data_root("configs") / "attention" / "sm_90a" / "d128_causal_bf16.yaml"
    (tmp_path / "two.yaml").write_text(SWEEP.format(config=config.as_posix()))
    command = ["-m", "fa4gen", "sweep", "two.yaml", "--until", "rendered", "-j", "1"]
    out, got = on_terminal([*command, "--format", asked], tmp_path)
    assert out
    assert ("of 2 cases" in got) is drawn
