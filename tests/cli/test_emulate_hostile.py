"""Hostile launch files and PTX: refused with place, number and remedy, never a traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest

from fa4gen.cli.main import main
from tests.emulator.kernel import kernel
from tests.emulator.launch_file.hostile import hostile_launch, npy_files
from tests.emulator.ptx.hostile import hostile_ptx

PTX = kernel(
    """
    mov.u32 %r10, %tid.x; mul.wide.u32 %d10, %r10, 4; add.u64 %d10, %d0, %d10;
    st.global.u32 [%d10], %r10;
"""
)
LAUNCH = "block: 32\narguments:\n- {make: zeros, shape: [32], dtype: uint32, name: x}\n"
COMMAND = ["emulate", "kernel.ptx", "--launch", "launch.yaml"]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("kernel.ptx").write_text(PTX)
    Path("launch.yaml").write_text(LAUNCH)
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """Return the command's message for a file that it cannot run."""
    capsys.readouterr()
    assert main([*COMMAND, *more]) == 2
    return capsys.readouterr().err


def test_the_launch_as_it_is_runs(capsys) -> None:
    assert main(COMMAND) == 0
    assert "clean" in capsys.readouterr().out


MANY = 10**12
LAUNCHES = [
    ("block: {}\n", "launch.yaml:1:8: block: {} is not possible; it must be a whole num"),
    ("", "launch.yaml:1:1: a launch file is a mapping"),
    (LAUNCH + "block: 64\n", "launch.yaml:4:1: the key block is given twice: first at line 1"),
    (LAUNCH + "grid: 2147483648\n", "launch.yaml:4:7: a grid of (2147483648, 1, 1) CTAs; at most"),
    (LAUNCH + "grid: 2147483647\n", "launch.yaml:4:7: a grid of 2147483647 clusters takes a step"),
    (LAUNCH + "grid: 11\nmax_steps: 10\n", "the limit is 10 steps\n  Launch fewer CTAs, or allow"),
    (LAUNCH + "cluster: 17\ngrid: 17\n", "launch.yaml:4:10: a cluster of (17, 1, 1) CTAs; at most"),
    (LAUNCH.replace("32\n", "1025\n", 1), "launch.yaml:1:8: a block of 1025 threads; at most 1024"),
    (LAUNCH + "dynamic_shared: 999999\n", "launch.yaml:4:17: 999999 bytes of shared memory, 9999"),
    (LAUNCH + f"seeds: {MANY}\n", f"{MANY} runs (seeds times schedules); at most 10000"),
    (LAUNCH.replace("[32]", f"[{MANY}]"), "launch.yaml:3:24: arguments[0].shape: memory for this"),
    (LAUNCH.replace("[32]", "[" + "1, " * 40 + "1]"), "it must be a list of 1 to 32 entries"),
    (LAUNCH + "max_memory: 1KiB\n", "above its limit of 1 KiB. Make the launch smaller, or allow"),
    (LAUNCH + "max_memory: much\n", "expected bytes, or a number with a unit such as 8GiB"),
    (LAUNCH + "resident_clusters: 1000000\n", "launch.yaml:4:20: resident_clusters: 1000000 is n"),
    (LAUNCH + "checks: [race, {a: [" + "[" * 150 + "]" * 150 + "]}]", "more than 100 brackets"),
    (LAUNCH + "- {scalar: 1e400, dtype: float32}\n", "launch.yaml:4:12: 1e400 is beyond"),
    (LAUNCH + "- {scalar: .nan, dtype: int32}\n", "arguments[1].scalar: nan does not fit into int"),
    (LAUNCH + "- {bytes: '', size: 99999999999}\n", "a kernel has at most 32764 bytes"),
    (LAUNCH + "- {make: randint, shape: [3], low: .2, high: .9}\n", "[1].make: randint as"),
    (LAUNCH + "- {make: ones, shape: [3], tolerance: .inf}\n", "expected a finite number"),
    (LAUNCH + "- {array: folder.npy}\n", "arguments[1].array: folder.npy is no file"),
    (LAUNCH + "- {array: pipe.npy}\n", "arguments[1].array: pipe.npy is no file"),
    (LAUNCH + "- {make: ones, shape: [3], expect: pipe.npy}\n", "expect: pipe.npy is no file"),
    (LAUNCH + "- {make: ones, shape: [3], expect: objects.npy}\n", "it holds Python objects"),
    (LAUNCH + "- {array: objects.npy}\n", "objects.npy is no .npy file: it holds Python objects"),
    (LAUNCH + "- {bytes_file: pipe.npy}\n", "arguments[1].bytes_file: pipe.npy is no file"),
    (LAUNCH + "- {array: claims.npy}\n", "claims.npy says that it holds more than memory can"),
    (LAUNCH + "- {make: ones, shape: [1], dtype: __builtins__}\n", "no type '__builtins__'"),
    (LAUNCH + "- {make: ones, shape: [1], dtype: 'f4,f4'}\n", "there is no type 'f4,f4'"),
    (LAUNCH + "- {bytes: '', size: 8, pointers: {0: x, 0x0: x}}\n", "offset 0x0 is given twice"),
    (LAUNCH + "- {scalar: 017, dtype: int32}\n", "017 is octal in YAML 1.1 (15)"),
    ("a: &a [1]\nb: *b\n", "launch.yaml:2:4: not YAML: found undefined alias"),
    ("block: !!python/object:os.system 1", "the tag !!python/object:os.system means nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), LAUNCHES)
def test_a_hostile_launch_file_is_refused(capsys, text, message) -> None:
    npy_files()
    Path("launch.yaml").write_text(text)
    assert message in refused(capsys)


def test_many_mistakes_are_listed_in_part(capsys) -> None:
    Path("launch.yaml").write_text(LAUNCH + "block: 1\n" * 50)
    said = refused(capsys)
    assert said.count("is given twice") == 20
    assert "launch.yaml: and 30 problems more\n" in said
    Path("launch.yaml").write_text(LAUNCH + "- {scalar: 1}\n" * 50)
    said = refused(capsys)
    assert said.count("dtype is missing") == 20
    assert "and 30 problems more\n" in said


def test_files_that_cannot_be_read_are_refused(capsys) -> None:
    for name in ("launch.yaml", "kernel.ptx"):
        path = Path(name)
        old = path.read_bytes()
        path.unlink()
        assert f"{name}: no such file" in refused(capsys)
        path.mkdir()
        assert f"{name}: this is a folder, not " in refused(capsys)
        path.rmdir()
        os.mkfifo(path)
        assert f"{name}: this is a pipe or device" in refused(capsys)
        path.unlink()
        path.write_bytes(b"\xff\xfe\x00")
        assert "not UTF-8" in refused(capsys)
        path.write_bytes(old)


@pytest.mark.parametrize("option", ["--trace", "--timeline"])
def test_results_take_the_place_of_no_pipe(capsys, option) -> None:
    os.mkfifo("pipe")
    assert f"{option} names a pipe or device" in refused(capsys, option, "pipe")
    assert Path("pipe").is_fifo()


def test_a_hostile_option_is_refused(capsys) -> None:
    assert "--seeds" in refused(capsys, "--seeds", "1000000000")


def test_a_large_grid_takes_no_memory_and_shows_its_progress() -> None:
    """A list of its CTAs would take gigabytes before the first one runs."""
    Path("launch.yaml").write_text(LAUNCH.replace("zeros", "ones") + "grid: 100000000\n")
    with Path("err").open("w") as err:
        running = subprocess.Popen(
            [sys.executable, "-m", "fa4gen", *COMMAND, "--no-checks"],
            stdout=subprocess.DEVNULL,
            stderr=err,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        )
        try:
            until = time.monotonic() + 60
            while "run 1 of 1" not in Path("err").read_text() and time.monotonic() < until:
                time.sleep(0.2)
                assert running.poll() is None
            pages = int(Path(f"/proc/{running.pid}/statm").read_text().split()[1])
        finally:
            running.kill()
            running.wait()
    assert re.search(
        r"run 1 of 1: \d+ of 100000000 CTAs done, [\d.]+ MiB in use", Path("err").read_text()
    )
    assert pages * os.sysconf("SC_PAGE_SIZE") < 400 << 20


def check_status(status: int, err: str) -> None:
    """0 and 1 for runs, 2 for what cannot run, whose message begins with the place."""
    assert status in (0, 1, 2)
    if status == 2:
        assert re.match(r"(kernel\.ptx|launch\.yaml)(:\d+:\d+)?: ", err), err
        assert len(err) < 5000
    assert "Traceback" not in err


@pytest.mark.parametrize("seed", range(4))
def test_mutated_launch_files_end_with_a_status(capsys, seed) -> None:
    npy_files()
    np.save("x.npy", np.zeros(32, np.float32))
    random = Random(seed)
    for _ in range(30):
        Path("launch.yaml").write_bytes(hostile_launch(random, LAUNCH))
        check_status(main(COMMAND), capsys.readouterr().err)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_ptx_ends_with_a_status(capsys, seed) -> None:
    random = Random(seed)
    Path("launch.yaml").write_text(LAUNCH + "max_steps: 2000\n")
    for _ in range(30):
        Path("kernel.ptx").write_bytes(hostile_ptx(random))
        check_status(main(COMMAND), capsys.readouterr().err)


@pytest.mark.parametrize("name", ["secret.cu", "secret.txt", "link.cu"])
def test_findings_show_no_line_of_another_file(name, capsys, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    place = elsewhere if name == "secret.cu" else Path()
    for folder in (elsewhere, Path()):
        (folder / "secret.txt").write_text("mine\n" * 9)
    (elsewhere / "secret.cu").write_text("mine\n" * 9)
    Path("link.cu").symlink_to(elsewhere / "secret.cu")
    body = ".loc 1 7 3\n mov.u32 %r1, 0; st.global.u32 [%d0+4096], %r1;"
    file = f'.file 1 "{(place / name).absolute()}"'
    Path("kernel.ptx").write_text(kernel(body, module=file))
    for output in ("text", "json", "github"):
        assert main([*COMMAND, "--format", output]) == 1
        said = "".join(capsys.readouterr())
        assert f"{name}:7" in said
        assert "mine" not in said
