"""The parts that need no GPU work where Python has none of the modules of POSIX, as on Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen
from fa4gen.resources import data_root

PACKAGE = Path(fa4gen.__file__).parent
ROOT = PACKAGE.parent
CONFIG = data_root("configs") / "attention" / "sm_90a" / "d128_causal_bf16.yaml"
POSIX_ONLY = ("fcntl", "grp", "posix_ipc", "pty", "pwd", "resource", "syslog", "termios", "tty")
NAMES_OF_OS = ("getuid", "geteuid", "getgid", "fork", "forkpty", "killpg", "sched_getaffinity",
               "O_CLOEXEC", "sysconf", "mkfifo")  # fmt: skip
NAMES_OF_SIGNAL = ("pthread_sigmask", "SIGKILL", "SIGHUP", "SIGALRM", "SIGPIPE", "SIGUSR1")
WITHOUT = f"""
import concurrent.futures.process, multiprocessing.util, platform, subprocess, tempfile
import os, signal, sys
platform.uname()
sys.modules.update(dict.fromkeys({POSIX_ONLY!r}))
for module, names in ((os, {NAMES_OF_OS!r}), (signal, {NAMES_OF_SIGNAL!r})):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""
"""Takes away what Windows lacks, after the standard library took what it needs on this system."""
MAIN = WITHOUT + "from fa4gen.cli.main import main; sys.exit(main(sys.argv[1:]))"
EVERY_MODULE = (
    WITHOUT
    + """
import importlib, pathlib
root = pathlib.Path(sys.argv[1])
for path in sorted(root.rglob("*.py")):
    parts = path.relative_to(root.parent).with_suffix("").parts
    if "data" not in parts and path.name != "__main__.py":
        importlib.import_module(".".join(parts).removesuffix(".__init__"))
"""
)


def run(code: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT), "FA4GEN_CACHE_DIR": str(cwd / "cache")},
        timeout=300,
        check=False,
    )


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    done = run(EVERY_MODULE, str(PACKAGE), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_commands_that_need_no_gpu(tmp_path: Path) -> None:
    config = str(CONFIG)
    for args in (
        ("render", config),
        ("check", config),
        ("explain", config),
        ("list", config),
        ("schema",),
        ("sweep", "hopper_tuning", "--list"),
    ):
        done = run(MAIN, *args, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), (args, done.stderr)
        assert done.stdout


def test_a_sweep_keeps_its_results(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text(
        f"base: {CONFIG.as_posix()}\nmatrix:\n  mask: [none, causal]\n", encoding="utf-8"
    )
    for kept in ("", "2 of 2 results kept"):
        done = run(MAIN, "sweep", "two.yaml", "--until", "rendered", "-j", "1", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "2 cases: 2 passed" in done.stdout
        assert kept in done.stderr


@pytest.mark.parametrize("name", POSIX_ONLY)
def test_the_modules_are_taken_away(name: str, tmp_path: Path) -> None:
    done = run(WITHOUT + f"import {name}", cwd=tmp_path)
    assert "ModuleNotFoundError" in done.stderr
