from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from fa4gen.cli import main as main_module
from fa4gen.cli.main import main
from fa4gen.config.find import find_sweep
from fa4gen.config.load import config_from_data
from fa4gen.config.sweep import expand_sweep
from fa4gen.designs.build import build_plan

SWEEP = """\
base: {kernel: attention, arch: sm_90a, dtype: bf16, depth: 64}
matrix:
  mask: [none, causal]
include:
  - {mask: {sliding_window: 0}}
  - {num_kv_stages: 16, depth: 256}
"""
# num_kv_stages and depth are not keys of the matrix: the last entry is added to both combinations.
FITTING = SWEEP.replace("stages: 16, depth: 256", "stages: 2")


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text(FITTING)
    return tmp_path


def sweep(*args: str) -> int:
    return main(["sweep", "s.yaml", "-j", "1", *args])


def rendered(*args: str) -> int:
    return sweep("--until", "rendered", *args)


def records() -> dict[str, dict[str, Any]]:
    lines = [json.loads(line) for line in Path("sweep-results/s.jsonl").read_text().splitlines()]
    assert len({line["case"] for line in lines}) == len(lines)
    return {line["case"]: line for line in lines}


def test_a_sweep(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rendered("--junit", "j.xml") == 0

    found = records()
    assert list(found) == ["s_mask_none_kv2", "s_causal_kv2", "s_window0"]
    assert [record["outcome"] for record in found.values()] == ["passed", "passed", "skipped"]
    assert found["s_causal_kv2"]["proof"] == "rendered"
    [problem] = found["s_window0"]["problems"]
    assert (problem["file"], problem["line"]) == ("s.yaml", 5)
    suite = ET.parse("j.xml").getroot()[0]
    assert suite.get("tests") == "3"
    out, err = capsys.readouterr()
    assert err == ""
    head, *cases, blank, _, row, summary, proved = out.splitlines()
    assert head.split() == [
        "case", "result", "cases", "registers", "spilled", "shared", "stages", "seconds",
    ]  # fmt: skip
    assert [case.split()[:-1] for case in cases] == [
        [name, "rendered", "-", "-", "-", "-", "2", "kv"]
        for name in ("s_mask_none_kv2", "s_causal_kv2")
    ]
    assert blank == ""
    assert row.startswith("s_window0  skipped  mask.sliding_window: 0 is not possible")
    assert summary == "s: 3 cases: 2 passed, 1 skipped; results: sweep-results/s.jsonl"
    assert proved == "proved: 2 rendered"


def test_a_second_run_keeps_what_would_be_the_same(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rendered() == 0
    before = records()
    Path("s.yaml").write_text(FITTING.replace("depth: 64", "depth: 64, lse: false"))
    assert rendered("--shard", "1/1") == 0
    assert "kept" not in capsys.readouterr().err
    changed = records()
    assert changed["s_causal_kv2"]["key"] != before["s_causal_kv2"]["key"]

    assert rendered("--format", "json") == 0

    out, err = capsys.readouterr()
    assert "2 of 3 results kept from sweep-results/s.jsonl" in err
    assert records() == changed
    document = json.loads(out)
    assert document["counts"] == {"passed": 2, "failed": 0, "skipped": 1}
    assert document["cases"] == list(changed.values())

    assert rendered("--fresh") == 0
    assert "kept" not in capsys.readouterr().err


def test_what_the_plan_refuses_is_skipped_with_its_arithmetic(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.yaml").write_text(SWEEP)

    assert rendered("--format", "github") == 2

    found = records()
    assert [record["stage"] for record in found.values()] == ["plan", "plan", "schema"]
    assert all(record["outcome"] == "skipped" for record in found.values())
    out, err = capsys.readouterr()
    assert "every case was skipped" in err
    assert out.count("::notice file=s.yaml,line=2,") == 1  # one for both cases
    assert "and 1 more skipped: shared memory:" in out


def test_shards_make_the_whole(work: Path) -> None:
    for shard in ("1/2", "2/2"):
        assert rendered("--shard", shard) == 0

    lines = [
        json.loads(line)["case"]
        for part in (1, 2)
        for line in Path(f"sweep-results/s.{part}of2.jsonl").read_text().splitlines()
    ]
    assert lines == ["s_mask_none_kv2", "s_window0", "s_causal_kv2"]


def test_a_worker_that_fails_fails_the_sweep(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken").mkdir()
    Path("broken/jinja2.py").write_text("raise RuntimeError('broken installation')")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(work / "broken"))  # workers inherit the path
        assert rendered("--junit", "j.xml", "--format", "github") == 1

    found = records()
    assert found["s_causal_kv2"]["outcome"] == "failed"
    assert found["s_causal_kv2"]["stage"] == "worker"
    suite = ET.parse("j.xml").getroot()[0]
    assert (suite.get("errors"), suite.get("failures")) == ("2", "0")
    out, err = capsys.readouterr()
    assert "::error file=s.yaml,line=2,col=1::s_mask_none_kv2 and 1 more failed: Runtime" in out
    assert "failed to worker: s_causal_kv2" in err

    assert rendered() == 0  # failed cases are tried again
    assert records()["s_causal_kv2"]["outcome"] == "passed"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--shard", "0/2"], "'0/2' is not I/N"),
        (["--shard", "3/2"], "'3/2' is not I/N"),
        (["--shard", "4/4"], "shard 4/4 holds no case: the sweep has 3"),
        (["--junit", "s.yaml"], "not xml"),
        (["--cases", "szie/*"], "no case is named szie/*"),
        (["--results", "s.yaml/x"], "cannot be written"),
        (["--until", "proved"], "'proved' is not one of"),
    ],
)
def test_a_wrong_option(
    work: Path, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rendered(*args) == 2
    assert message in capsys.readouterr().err
    assert Path("s.yaml").read_text() == FITTING
    assert not Path("sweep-results").exists()


def test_every_case_of_the_shipped_sweeps_of_matrix_products_can_be_planned() -> None:
    for name in ("gemm_hopper_tuning", "gemm_blackwell_tuning"):
        cases = expand_sweep(find_sweep(name)).cases
        assert len(cases) > 15
        for case in cases:
            assert build_plan(config_from_data(case.config, "")).kernel == "gemm"


def test_listing_runs_nothing(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("--list", "--format", "json") == 0

    listed = json.loads(capsys.readouterr().out)
    assert [case["case"] for case in listed] == ["s_mask_none_kv2", "s_causal_kv2", "s_window0"]
    assert listed[0]["problems"] == []
    assert listed[2]["problems"][0]["line"] == 5
    assert not Path("sweep-results").exists()


def test_listing_plans_the_cases(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("s.yaml").write_text(SWEEP.replace("16, depth: 256", "16"))
    assert sweep("--list") == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["s_mask_none_kv16", "s_causal_kv16", "s_window0"]
    assert all("  shared memory: " in row and " available" in row for row in rows[:2])
    assert sweep("--list", "--format", "json") == 0
    [problem] = json.loads(capsys.readouterr().out)[0]["problems"]
    assert (problem["file"], problem["line"]) == ("s.yaml", 2)
    assert "232448 available" in problem["message"]


def test_the_summary_is_added_to_a_file(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("summary.md").write_text("before\n")
    assert rendered("--summary", "summary.md", "--format", "github") == 0
    lines = Path("summary.md").read_text().splitlines()
    assert lines[:4] == ["before", "### s: 3 cases: 2 passed, 1 skipped", "", "proved: 2 rendered"]
    assert "| s_causal_kv2 | rendered | - | - | - | - | 2 kv | " in "\n".join(lines)
    assert lines[-2].startswith("| s_window0 | skipped | mask.sliding_window: 0 is not possible")


@pytest.mark.parametrize(
    ("place", "message"), [(".", "names a folder"), ("no/file.md", "cannot be written")]
)
def test_a_summary_that_cannot_be_written(work: Path, place, message, capsys) -> None:
    assert rendered("--summary", place) == 2
    assert f"--summary {message}" in capsys.readouterr().err
    assert not Path("sweep-results").exists()


def test_a_sweep_that_is_killed_goes_on_where_it_was(work: Path) -> None:
    depths = "[64, 96, 128, 192, 256]"
    Path("s.yaml").write_text(FITTING.replace("matrix:", f"matrix:\n  depth: {depths}"))
    command = [sys.executable, "-m", "fa4gen", "sweep", "s.yaml", "-j", "1", "--until", "rendered"]
    env = {**os.environ, "PYTHONPATH": str(Path(main_module.__file__).parents[2])}
    results = Path("sweep-results/s.jsonl")
    with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 60
        while not (results.exists() and b'"passed"' in results.read_bytes()):
            assert time.monotonic() < deadline
            time.sleep(0.002)
        running.send_signal(signal.SIGKILL)
    with results.open("ab") as stream:
        stream.write(b'{"schema_version": 1, "sweep": "s", "ca')  # as if interrupted while writing

    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120)

    assert " of 11 results kept" in done.stderr
    assert len(records()) == 11


@pytest.mark.compile
def test_a_case_is_compiled_and_run_where_there_is_a_gpu(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("s.yaml").write_text(FITTING.replace("mask: [none, causal]", "mask: [causal]"))

    assert sweep("--cases", "size/64", "--seed", "5") == 0

    record = records()["s_causal_kv2"]
    assert record["outcome"] == "passed"
    assert record["facts"]["spill_store_bytes"] == 0
    assert record["facts"]["registers"] > 0
    assert record["facts"]["dynamic_shared_bytes"] > 48 << 10
    assert record["facts"]["num_kv_stages"] == 2
    err = capsys.readouterr().err
    if record["proof"] == "compiled":
        assert "were not run: no GPU" in err
        assert record["verification"] == {}
    else:
        verification = record["verification"]
        covered = verification.pop("covered", None)
        assert verification == {"seed": 5, "num_cases": 1, "num_passed": 1}
        assert (record["proof"] == "emulated") == (covered is not None)
        assert covered is None or "rings wrapped twice" in covered
        assert "not run" not in err
