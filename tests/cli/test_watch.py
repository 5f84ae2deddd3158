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

    def rests(self, times: int) -> None:
        """Wait until it has rendered so many times and waits for a change."""
        self.until(lambda: self.said().count("; Ctrl-C ends\n") >= times)


@pytest.fixture
def watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watching]:
    for name in ("attention/sm90/kernel.cu.j2", "rings/barriers.h.j2"):
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("// {{ plan.name }}\n")
    monkeypatch.chdir(tmp_path)
    Path("kernels").mkdir()
    Path("base.yaml").write_text(BASE)
    Path("kernels/one.yaml").write_text("extends: ../base.yaml\n")
    running = Watching("kernels", "--templates", "mine")
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def config_of(name: str) -> dict[str, object]:
    text = Path(f"generated/sm_90a/{name}/{name}.json").read_text()
    config: dict[str, object] = json.loads(text)["config"]
    return config


def test_each_input_that_changes_is_rendered_again(watching: Watching) -> None:
    watching.rests(1)
    assert config_of("one")["depth"] == 128

    Path("base.yaml").write_text(BASE.replace("128", "64"))
    watching.rests(2)
    assert config_of("one")["depth"] == 64
    assert "changed: base.yaml\n" in watching.said()

    Path("kernels/one.yaml").write_text("extends: ../base.yaml\ndepth: 100\n")
    watching.rests(3)
    assert "kernels/one.yaml:2:8: depth: 100 is not possible" in watching.said()
    assert config_of("one")["depth"] == 64

    Path("kernels/one.yaml").write_text("extends: ../base.yaml\ndepth: 96\n")
    watching.rests(4)
    assert config_of("one")["depth"] == 96

    Path("kernels/two.yaml").write_text(BASE)
    watching.rests(5)
    assert config_of("two")["depth"] == 128

    Path("mine/rings/barriers.h.j2").write_text("// new {{ plan.name }}\n")
    watching.rests(6)
    assert Path("generated/sm_90a/two/two_barriers.h").read_text() == "// new two\n"


@pytest.mark.parametrize(
    ("ending", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_it_ends_at_once_and_clean(watching: Watching, ending: signal.Signals, status: int) -> None:
    watching.rests(1)
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
