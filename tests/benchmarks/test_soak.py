"""That the soak sees what it looks for, and a short one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a soak needs Linux")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RENDER = ("render", "--out", "out")


@pytest.fixture
def soak(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import soak

    return soak


@pytest.fixture
def violations(
    soak: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., list[str]]]:
    """Run a stand-in of fa4gen's main as a line; the kinds of its violations."""
    place = soak.Place(tmp_path / "base", tmp_path / "cache")
    work = tmp_path / "base" / "walk" / "work"
    work.mkdir(parents=True)

    def judged(main: Callable[[Any], int], args: tuple[str, ...] = RENDER) -> list[str]:
        monkeypatch.setattr("fa4gen.cli.main.main", main)
        line = soak.Line(args, ("out",))
        _, found = soak.tried(line, "", True, work.parent, place, random.Random(0))
        return [violation.partition(":")[0] for violation in found]

    monkeypatch.setattr("soak_runs.ORPHANS_S", 0.3)
    soak.adopt_orphans(True)
    yield judged
    soak.adopt_orphans(False)


def write(path: str, text: str) -> int:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text(text)
    return 0


def raising(args: object) -> int:
    raise ValueError(args)


def leaving(args: object) -> int:
    os.posix_spawnp("sleep", ["sleep", "60"], os.environ)  # a Popen would warn when it goes
    return 0


def hanging(args: object) -> int:
    time.sleep(60)
    return 0


def warning(args: object) -> int:
    print("x.py:1: RuntimeWarning: overflow", file=sys.stderr)
    return 0


def two_documents(args: object) -> int:
    print("{}\n{}")
    return 0


@pytest.mark.parametrize(
    ("main", "kinds"),
    [
        (lambda args: 3, []),
        (lambda args: write("out/whole.json", "{}"), []),
        (lambda args: 7, ["status"]),
        (lambda args: -11, ["status"]),
        (raising, ["traceback"]),
        (warning, ["traceback"]),
        (leaving, ["processes"]),
        (lambda args: write("elsewhere.txt", ""), ["outside"]),
        (lambda args: write("out/.x.1.tmp", ""), ["left"]),
        (lambda args: write("out/half.json", '{"a":'), ["half"]),
        (lambda args: write("out/half.cu", "int x"), ["half"]),
    ],
)  # fmt: skip
def test_violations(
    violations: Callable[..., list[str]], main: Callable[[Any], int], kinds: list[str]
) -> None:
    assert violations(main) == kinds


def test_a_hang(violations: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soak_runs.LIMIT_S", 1.0)
    assert violations(hanging) == ["hang"]


def test_a_json_document(violations: Callable[..., list[str]]) -> None:
    assert violations(two_documents, ("list", "--format", "json")) == ["json"]


def test_the_last_format_counts(violations: Callable[..., list[str]]) -> None:
    assert violations(two_documents, ("list", "--format", "json", "--format", "text")) == []


def test_writing_beyond_all_folders(violations: Callable[..., list[str]], tmp_path: Path) -> None:
    beyond = tmp_path / "beyond"
    assert set(violations(lambda args: write(str(beyond), ""))) == {"outside"}
    assert beyond.exists()


def test_lines_find_the_packages_of_this_process(
    soak: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    variables = soak.Place(tmp_path / "base", tmp_path / "cache").environment()
    site, *paths = variables["PYTHONPATH"].split(os.pathsep)
    assert site == str(tmp_path / "base" / "site")
    assert paths == [str(BENCHMARKS.parent), str(tmp_path / "packages")]
    assert variables["CUDA_VISIBLE_DEVICES"] == ""


def test_a_short_soak(tmp_path: Path) -> None:
    command = [sys.executable, BENCHMARKS / "soak.py", "--count", "20", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 lines" in done.stdout
    assert "violations: none" in done.stdout


def test_a_signal_before_a_line_is_prepared_ends_it_as_one(
    soak: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import soak_runs

    prepare = soak_runs._prepare

    def early(*args: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        prepare(*args)

    monkeypatch.setattr(soak_runs, "_prepare", early)
    place = soak.Place(tmp_path / "base", tmp_path / "cache")
    place.base.mkdir(exist_ok=True)
    run = soak_runs.run_line(
        ["--version"], tmp_path, place, "", random.Random(1), quick=True, forked=True
    )
    assert run.status == -signal.SIGINT


def test_a_group_is_drawn_with_one_of_its_commands(soak: Any, tmp_path: Path) -> None:
    rng = random.Random(5)
    (tmp_path / "work").mkdir()
    names = soak.write_inputs(tmp_path / "work", rng)
    lines = [soak.draw_line(rng, names).args for _ in range(600)]
    drawn = {args[1] for args in lines if args[0] == "vendor" and len(args) > 1}
    assert drawn == {"add", "update", "recompile", "check", "verify"}
