from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main
from fa4gen.tune.kernel_set import open_set

if TYPE_CHECKING:
    from pathlib import Path

SHAPES = "m: [16, 512]\nlayers:\n- {n: 6144, k: 4096}\n- {n: 4096, k: 14336}\n"
TUNE = ["tune", "gemm_bf16_sm90", "--no-measure"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "layers.yaml").write_text(SHAPES)
    return tmp_path


def test_without_a_gpu(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TUNE, "--shapes", "layers.yaml", "--out", "tuned", "--plot", "t.svg"]) == 0
    captured = capsys.readouterr()
    rows = [line.split() for line in captured.out.splitlines()[1:5]]
    assert [row[0] for row in rows] == [
        "16x6144x4096", "512x6144x4096", "16x4096x14336", "512x4096x14336",
    ]  # fmt: skip
    assert "The cost model chose: nothing was measured." in captured.out
    assert "gemm_bf16_sm90.tuning.yaml" in captured.out
    kernels = open_set(here / "tuned" / "gemm_bf16_sm90.tuning.yaml")
    assert kernels.choose("16x6144x4096") == rows[0][1]
    assert len((here / "tune-results" / "gemm_bf16_sm90.jsonl").read_text().splitlines()) == 4
    assert "NVIDIA H200, predicted" in (here / "t.svg").read_text()
    assert main([*TUNE, "--shapes", "layers.yaml", "--out", "tuned"]) == 0
    assert "4 of 4 results kept" in capsys.readouterr().err


def test_a_folder_with_a_table_alone_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """As README has it: the table names a shipped kernel, and there is no new config."""
    assert main([*TUNE, "--problem", "16x4096x14336", "--out", "mine"]) == 0
    capsys.readouterr()
    assert main(["check", "mine"]) == 0
    assert "1 file: 1 current" in "".join(capsys.readouterr())


def test_shards_and_what_they_found(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for shard in ("1/2", "2/2"):
        assert main([*TUNE, "--shapes", "layers.yaml", "--shard", shard]) == 0
    assert not (here / "gemm_bf16_sm90.tuning.yaml").exists()
    assert sorted(path.name for path in (here / "tune-results").iterdir()) == [
        "gemm_bf16_sm90.1of2.jsonl",
        "gemm_bf16_sm90.2of2.jsonl",
    ]
    capsys.readouterr()
    assert main([*TUNE, "--shapes", "layers.yaml"]) == 0
    assert "4 of 4 results kept" in capsys.readouterr().err
    assert (here / "gemm_bf16_sm90.tuning.yaml").exists()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TUNE, "--problem", "4104x4104x4104", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (problem,) = document["problems"]
    assert problem["winner"] == "gemm_bf16_192x176_pair_sm90"
    assert problem["decided_by"] == "model"
    assert document["written"] == ["gemm_bf16_sm90.tuning.yaml"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["tune", "gemm_bf16_sm90"], 2, "no problem to tune for"),
        ([*TUNE, "--problem", "16x16"], 2, "not the problem of a matrix product"),
        ([*TUNE, "--problem", "1kx1kx1k", "--plot", "a.png"], 2, "end in .svg"),
        ([*TUNE, "--problem", "1kx1kx1k", "--executor", "slurm"], 2, "neither local nor dask:"),
        (["tune", "gemm", "--problem", "1kx1kx1k"], 2, "Name one of them"),
        ([*TUNE, "--problem", "1kx1kx1k", "--chip", "h99"], 2, "'h99' is no known chip for sm_90a"),
        (["tune", "decode_mla_bf16", "--problem", "2x8x1x8k"], 2, "whose keys hold the values"),
        ([*TUNE, "--problem", "16x4096x4095"], 2, "multiple of 16 bytes"),
        ([*TUNE, "--problem", "16x4096x4095"], 2, "Give 16x4096x4096, the extents to which"),
        (
            ["tune", "d128_causal_bf16", "--set", "mask=tree", "--problem", "2x8x33x8k"],
            2,
            "33 query rows, and a call of d128_causal_bf16 has at most 32",
        ),
        ([*TUNE, "--problem", "1kx1kx1k", "--shard", "3/2"], 2, "3/2"),
    ],
)
def test_refused(
    arguments: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err + captured.out


@pytest.mark.parametrize("problems", [["16x4096x4095", "16x100x4095", "1kx1kx1k"]])
def test_all_wrong_problems_are_named_at_once(
    problems: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*TUNE, *(word for one in problems for word in ("--problem", one))]) == 2
    assert capsys.readouterr().err.count("no call takes such contiguous matrices") == 2


@pytest.mark.parametrize("chip", ["h100", "NVIDIA H100", "NVIDIA H100 80GB HBM3"])
def test_a_chip_is_known_by_its_first_words(chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*TUNE, "--problem", "1kx1kx1k", "--chip", chip, "--format", "json"]
    assert main(arguments) == 0
    (problem,) = json.loads(capsys.readouterr().out)["problems"]
    assert problem["chip"] == "NVIDIA H100 80GB HBM3"


def test_a_gpu_that_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    from fa4gen.runtime.device import find_device

    if find_device("sm_90a") is not None:
        pytest.skip("there is a GPU")
    assert main([*TUNE, "--problem", "1kx1kx1k", "--require-gpu"]) == 4
    assert "compute capability 9.0" in capsys.readouterr().err
