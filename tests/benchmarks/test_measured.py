"""The form of benchmarks/results: one for all that was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import measured
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RESULTS = sorted((BENCHMARKS / "results").glob("*.jsonl"))
BENCH = {
    "date": "2026-11-21T08:00:00+00:00",
    "gpu": {"name": "NVIDIA H200"},
    "configs": [
        {
            "name": "k",
            "sizes": [
                {
                    "word": "2k",
                    "ours": {"round_medians_ms": [0.2, 0.3], "median_ms": 0.25},
                    "peers": {"cublas": {"median_ms": 0.5}},
                },
                {"word": "4k", "ours": {}, "peers": {}},
            ],
        },
        {"name": "failed", "sizes": []},
    ],
}


def test_there_are_results() -> None:
    assert len(RESULTS) >= 40


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_all_results_have_one_form(path: Path) -> None:
    lines = measured.read_lines(path)
    assert lines
    kept = json.loads(json.dumps(lines))
    for line in lines:
        assert set(measured.KEYS) <= line.keys() <= {*measured.KEYS, "run", "at"}
        assert line["chip"].replace(" ", "_").lower().split("_")[1] in path.stem
        assert len(line["date"]) == 10
        assert all(us > 0 for us in (*line["times_us"], *line["peers_us"].values()))
    assert measured.document(path) or not any("run" in line for line in lines)
    assert measured.read_lines(path) == kept  # a document is a copy


def test_a_document_of_bench_comes_back(tmp_path: Path) -> None:
    lines = measured.lines_of(BENCH, chip="", date="", commit="abc")
    path = tmp_path / "x.jsonl"
    path.write_text(measured.text_of(lines))
    assert measured.document(path) == BENCH
    assert [(line["problem"], line["kernel"]) for line in lines] == [("2k", "k"), ("4k", "k")]
    first = lines[0]
    assert (first["chip"], first["date"], first["commit"]) == ("NVIDIA H200", "2026-11-21", "abc")
    assert (first["times_us"], first["peers_us"]) == ([200.0, 300.0], {"cublas": 500.0})
    assert "run" not in lines[1]


def test_rows_of_tune_come_back(tmp_path: Path) -> None:
    row = {
        "problem": "1x2x3",
        "chip": "c",
        "winner": "b",
        "peers_us": {"cublas": 4.0},
        "kernels": [
            {"name": "a", "us": 1.0, "rounds_us": [1.0]},
            {"name": "b", "us": 2.0, "rounds_us": [2.0, 2.5]},
        ],
    }
    path = tmp_path / "x.jsonl"
    path.write_text(measured.text_of(measured.lines_of([row], chip="d", date="e", commit="f")))
    assert measured.rows(path) == [row]
    (line,) = measured.read_lines(path)
    assert (line["kernel"], line["times_us"], line["chip"]) == ("b", [2.0, 2.5], "c")
    assert (line["date"], line["commit"], line["peers_us"]) == ("e", "f", {"cublas": 4.0})


def test_a_layer_of_experts_is_a_line_for_each_kind_of_products(tmp_path: Path) -> None:
    row = {
        "experts": "fa4gen bf16",
        "tokens": 64,
        "microseconds": 2.5,
        "tokens_per_s": 2.56e7,
        "error": 0.1,
        "loop_error": 0.1,
        "holds": True,
        "times_peer": 1.5,
    }
    path = tmp_path / "x.jsonl"
    path.write_text(measured.text_of(measured.lines_of([row], chip="d", date="e", commit="f")))
    assert measured.rows(path) == [row]
    (line,) = measured.read_lines(path)
    assert (line["problem"], line["kernel"]) == ("64 tokens", "fa4gen bf16")
    assert (line["times_us"], line["peers_us"], line["chip"]) == ([2.5], {}, "d")


@pytest.mark.parametrize(
    ("own", "peers"),
    [
        ({"rounds_us": {"a": [2.0, 3.0], "b": [4.0, 6.0]}}, {"b": 5.0}),
        ({"us_a_step": [2.0, 3.0]}, {}),
    ],
    ids=["sparse_blocks", "chain"],
)
def test_rows_that_name_their_problem_and_kernel(own: Any, peers: dict[str, float]) -> None:
    row = {"problem": "p", "kernel": "a", **own}
    written = {"device": "d", "date": "2026-11-30", "results": [row]}
    (line,) = measured.lines_of(written, chip="", date="", commit="c")
    assert (line["problem"], line["kernel"], line["chip"]) == ("p", "a", "d")
    assert (line["times_us"], line["peers_us"]) == ([2.0, 3.0], peers)
    assert line["details"] == row
    assert line["run"] == {**written, "results": []}


def test_the_program_converts_files_into_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.json").write_text(json.dumps(BENCH))
    out = tmp_path / "out.jsonl"
    words = ["measured.py", *[str(tmp_path / "in.json")] * 2, str(out)]
    monkeypatch.setattr(sys, "argv", words)
    assert measured.main() == 0
    assert [line["problem"] for line in measured.read_lines(out)] == ["2k", "4k"] * 2


def test_the_program_converts_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.json").write_text(json.dumps(BENCH))
    out = tmp_path / "out.jsonl"
    monkeypatch.setattr(sys, "argv", ["measured.py", str(tmp_path / "in.json"), str(out)])
    assert measured.main() == 0
    assert measured.document(out) == BENCH
