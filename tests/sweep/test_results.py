from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.errors import ConfigError, Problem
from fa4gen.sweep.record import CaseRecord, count_outcomes, read_line
from fa4gen.sweep.results import ResultsFile, results_path

RECORD = CaseRecord(
    sweep="s",
    case="s_d64",
    outcome="failed",
    stage="compile",
    proof="rendered",
    key="abc",
    problems=(Problem("spills", "Use fewer.", "a.cu", 3, 4), Problem("two\nlines \u2028 \ud800")),
    varied={"depth": 64},
    config={"depth": 64, "mask": {"sliding_window": 8}},
    seconds={"plan": 0.5, "compile": 2.0},
    facts={"registers": 168},
    generator="fa4gen 0",
)
OTHER = replace(RECORD, case="s_d96", outcome="passed")


def read(path: Path, sweep: str = "s", *, fresh: bool = False) -> dict[str, CaseRecord]:
    with ResultsFile(path, sweep, fresh=fresh, read=read_line) as file:
        return dict(file.records)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A results file with one record."""
    path = tmp_path / "new" / "s.jsonl"
    with ResultsFile(path, "s", fresh=False, read=read_line) as file:
        file.append(RECORD)
    return path


def test_a_record_is_one_line_that_reads_back() -> None:
    line = RECORD.line()

    assert line.count("\n") == 1
    assert len(line.splitlines()) == 1
    assert read_line(line) == RECORD
    assert RECORD.total_seconds == 2.5


def test_a_number_that_json_lacks_becomes_text() -> None:
    record = replace(RECORD, varied={"softcap": math.inf, "x": [math.nan]})

    assert read_line(record.line()).varied == {"softcap": "inf", "x": ["nan"]}


@pytest.mark.parametrize(
    "line", ["", "3", "{}", '{"schema_version": 1}', RECORD.line().replace("failed", "odd")]
)
def test_what_is_no_record(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_line(line)


def test_counts() -> None:
    assert count_outcomes([RECORD, OTHER, OTHER]) == {"passed": 2, "failed": 1, "skipped": 0}


def test_records_are_found_again_and_the_last_of_a_case_counts(path: Path) -> None:
    with ResultsFile(path, "s", fresh=False, read=read_line) as file:
        assert file.records == {"s_d64": RECORD}
        file.append(OTHER)
        file.append(replace(RECORD, outcome="passed"))

    assert read(path) == {"s_d64": replace(RECORD, outcome="passed"), "s_d96": OTHER}


def test_fresh_forgets(path: Path) -> None:
    assert read(path, fresh=True) == {}
    assert path.read_bytes() == b""


@settings(max_examples=40)
@given(st.integers(0, len(RECORD.line().encode()) - 1))
def test_a_line_cut_off_anywhere_is_dropped_and_the_next_one_starts_anew(
    tmp_path_factory: pytest.TempPathFactory, length: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "s.jsonl"
    path.write_bytes(OTHER.line().encode() + RECORD.line().encode()[:length])

    with ResultsFile(path, "s", fresh=False, read=read_line) as file:
        assert file.records == {"s_d96": OTHER}
        file.append(RECORD)

    assert path.read_text() == OTHER.line() + RECORD.line()


def test_rewriting_replaces_all_lines(path: Path) -> None:
    mode = path.stat().st_mode
    with ResultsFile(path, "s", fresh=False, read=read_line) as file:
        file.rewrite([OTHER, RECORD])

    assert path.read_text() == OTHER.line() + RECORD.line()
    assert path.stat().st_mode == mode
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kernel: attention\n", "line 1 is not a result of a sweep"),
        ("not even a line", "is not a results file"),
        (RECORD.line() + "{}\n", "line 2 is not a result of a sweep"),
        (replace(RECORD, sweep="t").line(), "holds results of the sweep t, not of s"),
    ],
)
@pytest.mark.parametrize("fresh", [False, True])
def test_a_file_of_somebody_else_is_left_alone(
    tmp_path: Path, content: str, message: str, fresh: bool
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(content)

    with pytest.raises(ConfigError, match=message):
        read(path, fresh=fresh)

    assert path.read_text() == content


def test_two_runs_cannot_write_at_once(path: Path) -> None:
    with (
        ResultsFile(path, "s", fresh=False, read=read_line),
        pytest.raises(ConfigError, match="another run is writing"),
    ):
        ResultsFile(path, "s", fresh=False, read=read_line)

    assert read(path) == {"s_d64": RECORD}


def test_a_place_that_cannot_be_written(path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        ResultsFile(path / "below_a_file.jsonl", "s", fresh=False, read=read_line)


def test_where_results_go() -> None:
    assert results_path(Path("out"), "s", (1, 1)) == Path("out/s.jsonl")
    assert results_path(Path("out"), "s", (2, 5)) == Path("out/s.2of5.jsonl")
    assert results_path(Path("out/x.jsonl"), "s", (2, 5)) == Path("out/x.jsonl")
