"""Results that cannot be printed: a message or nothing, and a status that says so."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fa4gen.cli.main import main

FA4GEN = f"{sys.executable} -m fa4gen"
COMMANDS = ["list", "list --format json", "explain d128_causal_bf16", "--help", "list --help"]


def run(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command], env={**os.environ, **environment}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk(command: str) -> None:
    done = run(f"{FA4GEN} {command} >/dev/full")
    assert done.returncode == 2
    assert done.stderr.startswith("error: results cannot be written to stdout: no space left")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_errors_on_a_full_disk(unbuffered: str) -> None:
    done = run(f"{FA4GEN} list no_such 2>/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2


@pytest.mark.skipif(os.name != "posix", reason="POSIX shells")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_stdout(command: str) -> None:
    done = run(f"{FA4GEN} {command} >&-")
    assert done.returncode == 2
    assert done.stderr == "error: stdout is closed: there is nowhere to print results\n"


@pytest.mark.skipif(os.name != "posix", reason="POSIX shells")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_left(command: str) -> None:
    done = run(f"{{ {FA4GEN} {command}; echo $? >&2; }} | true")
    assert done.stderr == "141\n"


WRONG = ["nope", "list --bogus", "list no_such", "sweep --shard 0/1 x.yaml"]


@pytest.mark.skipif(os.name != "posix", reason="POSIX shells")
@pytest.mark.parametrize("command", WRONG)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_errors_under_json_whose_reader_left(command: str, unbuffered: str) -> None:
    done = run(
        f"{{ sleep 0.2; {FA4GEN} {command} --format json; echo $? >&2; }} | true",
        PYTHONUNBUFFERED=unbuffered,
    )
    *problems, status = done.stderr.splitlines()
    assert status == "141"
    assert problems
    assert "Exception ignored" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", WRONG)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_errors_under_json_on_a_full_disk(command: str, unbuffered: str) -> None:
    done = run(f"{FA4GEN} {command} --format json >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 2
    *problems, last, _ = done.stderr.splitlines()
    assert problems
    assert last.startswith("error: results cannot be written to stdout: no space left")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="POSIX shells")
def test_a_closed_stderr_changes_nothing() -> None:
    closed = run(f"{FA4GEN} list 2>&-")
    assert (closed.returncode, closed.stdout) == (0, run(f"{FA4GEN} list").stdout)
    assert run(f"{FA4GEN} list no_such 2>&-").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize(("arguments", "status"), [("list", 0), ("list no_such", 2), ("nope", 2)])
def test_a_full_stderr_changes_nothing(arguments: str, status: int) -> None:
    full = run(f"{FA4GEN} {arguments} 2>/dev/full")
    assert (full.returncode, full.stderr) == (status, "")
    assert full.stdout == run(f"{FA4GEN} {arguments}").stdout


@pytest.mark.skipif(sys.platform != "linux", reason="folders in use cannot be removed everywhere")
@pytest.mark.parametrize("arguments", ["check", "render d64_causal_bf16", "list", "explain x.yaml"])
def test_a_folder_that_is_gone(tmp_path: Path, arguments: str) -> None:
    gone = run(
        f"mkdir {tmp_path}/gone && cd {tmp_path}/gone && rmdir ../gone && {FA4GEN} {arguments}"
    )
    assert "Traceback" not in gone.stderr
    assert gone.returncode in (0, 2)


@pytest.mark.skipif(os.name != "posix", reason="POSIX shells")
def test_a_limit_of_the_size_of_files(tmp_path: Path) -> None:
    cache = {"FA4GEN_CACHE_DIR": str(tmp_path / "cache")}
    done = run(f"cd {tmp_path} && ulimit -f 1 && {FA4GEN} record out -- true", **cache)
    assert done.returncode == 2
    assert done.stderr.startswith("error: a file cannot be written: file too large")


INTERRUPTED = """
import importlib.abc, os, signal, sys
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == NAME:
            os.kill(os.getpid(), signal.SIGINT)
NAME = sys.argv[1]
sys.meta_path.insert(0, Interrupt())
from fa4gen.__main__ import run
sys.argv[1:] = ["list"]
sys.exit(run())
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("module", "status", "message"),
    [
        ("fa4gen.cli.main", -signal.SIGINT, ""),
        ("click", -signal.SIGINT, ""),
        ("fa4gen.cli.list", 130, "interrupted"),
    ],
)
def test_ctrl_c_while_modules_are_imported(module: str, status: int, message: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (status, message)


def explained(columns: str) -> list[str]:
    """The lines of an explanation, but for drawings."""
    done = run(f"{FA4GEN} explain d128_causal_bf16", COLUMNS=columns)
    assert done.returncode == 0
    return [line for line in done.stdout.splitlines() if not line.endswith(("┐", "│", "┤", "┘"))]


@pytest.mark.parametrize("columns", ["90", "120"])
def test_explain_wraps_to_the_width(columns: str) -> None:
    assert 60 < max(map(len, explained(columns))) <= int(columns)


def test_explain_breaks_no_name_and_in_a_pipe_no_row() -> None:
    assert any(line.split()[-1:] == ["tiles_per_head"] for line in explained("40"))
    (row,) = [line for line in explained("") if line.startswith("epilogue")]
    assert row.endswith("16-byte stores from registers need no staging")


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_leaves_no_escape_sequence(no_color: str) -> None:
    command = f"NO_COLOR={no_color} TERM=xterm {FA4GEN} explain d128_causal_bf16"
    code = f"import pty; pty.spawn(['sh', '-c', {command!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert b"Shared memory" in done.stdout
    assert (b"\x1b[" in done.stdout) == (not no_color)


class _Limited(io.FileIO):
    """A file that takes no more, whatever its descriptor is made to refer to."""

    def write(self, data, /) -> int:
        raise OSError(errno.EFBIG, "file too large")


def test_what_a_full_stdout_still_holds_is_dropped_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = io.TextIOWrapper(io.BufferedWriter(_Limited(tmp_path / "out", "w")))
    monkeypatch.setattr(sys, "stdout", limited)

    assert main(["list"]) == 2

    sys.stdout.flush()  # as Python does when it exits: status 120 where that fails
    monkeypatch.undo()
    with suppress(OSError):
        limited.close()
