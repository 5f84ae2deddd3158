"""``fa4gen render --watch``, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BASE = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 128\n"
PATIENCE_S = 60


class Watching:
    """A running ``fa4gen render --watch kernels`` with what it has said so far."""

    def __init__(self, *args: str) -> None:
        with Path("said").open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fa4gen", "render", "--watch", *args],
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    def said(self) -> str:
        return Path("said").read_text()

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not holds():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < end, self.said()
            time.sleep(0.05)

    def rests(self) -> None:
        """Wait until it has rendered and waits for a change."""
        self.until(lambda: "; Ctrl-C ends\n" in self.said())


@pytest.fixture
def watching(mine: Path) -> Iterator[Watching]:
    Path("kernels").mkdir()
    Path("base.yaml").write_text(BASE)
    Path("kernels/one.yaml").write_text("extends: ../base.yaml\n")
    running = Watching("kernels", "--templates", "mine")
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def depth_of(name: str) -> object:
    path = Path(f"generated/sm_90a/{name}/{name}.json")
    return json.loads(path.read_text())["config"]["depth"] if path.exists() else None


def test_each_input_that_changes_is_rendered_again(watching: Watching) -> None:
    """A file written in several steps may be rendered several times: each waits for its effect."""
    watching.rests()
    assert depth_of("one") == 128

    Path("base.yaml").write_text(BASE.replace("128", "64"))
    watching.until(lambda: depth_of("one") == 64)
    watching.until(lambda: "changed: base.yaml\n" in watching.said())

    Path("kernels/one.yaml").write_text("extends: ../base.yaml\ndepth: 100\n")
    refusal = "kernels/one.yaml:2:8: depth: 100 is not possible"
    watching.until(lambda: refusal in watching.said())
    assert depth_of("one") == 64

    Path("kernels/one.yaml").write_text("extends: ../base.yaml\ndepth: 96\n")
    watching.until(lambda: depth_of("one") == 96)

    Path("kernels/two.yaml").write_text(BASE)
    watching.until(lambda: depth_of("two") == 128)

    header = Path("generated/sm_90a/two/two_barriers.h")
    Path("mine/device/rings/barriers.h.j2").write_text("// new {{ plan.name }}\n")
    watching.until(lambda: header.read_text() == "// new two\n")


@pytest.mark.parametrize(
    ("ending", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_it_ends_at_once_and_clean(watching: Watching, ending: signal.Signals, status: int) -> None:
    watching.rests()
    watching.process.send_signal(ending)
    assert watching.process.wait(timeout=PATIENCE_S) == status
    assert "Traceback" not in watching.said()
    assert list(Path("generated").rglob(".*")) == []


@pytest.mark.parametrize("other", [["--dry-run"], ["--prune"], ["--format", "json"]], ids=str)
def test_what_does_not_go_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: list[str]
) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(BASE)
    assert main(["render", str(path), "--watch", *other]) == 2
    captured = capsys.readouterr()
    assert "--watch goes with neither" in captured.err + captured.out
