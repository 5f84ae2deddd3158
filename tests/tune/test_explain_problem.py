from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.tune.candidates import find_candidates
from fa4gen.tune.committed import committed_tables, find_table
from fa4gen.tune.explain import choose, is_taken, measured, region_of, why
from fa4gen.tune.explain import questions as questions_of
from fa4gen.tune.family import family_called
from fa4gen.tune.kernel_set import KernelSet
from fa4gen.tune.model.chips import H200
from tests.tune.candidates_of import existing

if TYPE_CHECKING:
    from pathlib import Path


def test_a_table_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "gemm_bf16_sm90", "--problem", "16x4096x14336"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "gemm_bf16_sm90 at 16x4096x14336, NVIDIA H200"
    rows = {row.split()[0]: row.split() for row in lines[2:13]}
    name = lines[2].split()[0]
    assert name == "gemm_bf16_m16_split_sm90"  # 37.6 us, as without the split: measured
    first, own = rows[name], rows["gemm_bf16_sm90"]
    assert (first[1], first[3], first[-1]) == ("shipped", "1.00", "memory")
    assert own[1] == "config"
    assert float(own[2]) > 3 * float(first[2])
    text = "\n".join(lines)
    assert f"{name}: " in text
    assert "128 CTAs in 1 wave of 132, 97% filled" in text
    assert "It saves: products " in text
    assert "us is predicted, not measured" in text
    assert H200.note in text


@pytest.mark.parametrize("path", committed_tables(H200.name), ids=lambda path: path.name)
def test_names_what_auto_takes(path: Path) -> None:
    """Where a table has a region, that is said; elsewhere the first one is what auto takes."""
    base = load_config(find_configs([path.name.removesuffix(".tuning.yaml")])[0])
    table = find_table(base, H200.name)
    assert table is not None
    assert table.path == path
    candidates = find_candidates(base)
    kernels = KernelSet(candidates, chip=H200.name, tuned=base)
    problems = [region.problem for region in table.regions]
    inside = {"gemm_bf16_sm90": ("333x4096x14336", "300x4096x14336")}
    family = family_called(base.config.kernel)
    outside = {"gemm": ("1000x3000x5000", "200x5000x3000"), "attention": ("16x64/16x385x1071",)}
    for problem in (*problems, *outside[family.name], *inside.get(base.config.name, ())):
        choice = choose(base, problem, H200, candidates)
        region = region_of(choice, table)
        assert (region is None) == (problem in outside[family.name])
        follows = region is not None and is_taken(choice, region, table)
        assert follows == (problem in problems)
        name = region.kernel if region and follows else choice.first.candidate.name
        assert kernels.choose(problem) == name
        said = " ".join(measured(choice, region, table))
        assert region is None or 'load(..., shapes="auto") takes' in said


def test_what_was_measured_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "gemm_bf16_sm90", "--problem", "16x4096x14336"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "gemm_bf16_sm90.tuning.yaml names gemm_bf16_sm90_32x64_swapped here, " in text
    assert main([*command, "--problem", "1000x3000x5000", "--format", "json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["problems"]
    assert first["table"]["kernel"] == "gemm_bf16_sm90_32x64_swapped"
    assert first["table"]["us"] > 30
    assert second["table"] is None
    assert main([*command, "--chip", "NVIDIA H100 80GB HBM3"]) == 0
    assert "configs/tuned/nvidia_h100_80gb_hbm3.yaml/" in capsys.readouterr().out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "gemm_bf16_sm90", "--problem", "4104x4104x4104", "--format", "json"]
    assert main([*command, "--problem", "2kx2kx2k", "--candidates", "3"]) == 0
    first, second = json.loads(capsys.readouterr().out)["problems"]
    assert (first["problem"], second["m"]) == ("4104x4104x4104", 2048)
    best = first["candidates"][0]
    assert best["name"] == "gemm_bf16_192x176_pair_sm90"
    assert (best["waves"], best["filled"]) == (4, 1.0)
    parts = best["launch_us"] + best["overlapped_us"] + best["epilogue_us"] + best["exchange_us"]
    assert best["us"] == pytest.approx(parts, abs=0.01)
    assert len(first["candidates"]) == 3


def test_the_config_itself_first() -> None:
    base = load_config(find_configs(["gemm_bf16_192x176_pair_sm90"])[0])
    choice = choose(base, "4104x4104x4104", H200)
    assert choice.first is choice.config
    text = " ".join(why(choice))
    assert text.startswith("gemm_bf16_192x176_pair_sm90: ")
    assert choice.ranked[1].candidate.name in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gemm_bf16_sm90", "--problem", "16x4096"], "not the problem of a matrix product"),
        (["gemm_bf16_sm90", "--problem", "1kx1kx1k", "--chip", "A100"], "no known chip for sm_90a"),
    ],
)
def test_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_chip_that_nothing_was_measured_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "gemm_bf16", "--problem", "4kx4kx4k"]) == 0
    assert "Nothing was measured on an NVIDIA B200" in capsys.readouterr().out


def test_an_own_config_with_a_residual(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("kernel: gemm\narch: sm_90a\ndtype: bf16\nresidual: matrix\nBM: 64\nBN: 128\n")
    assert main(["explain", str(path), "--problem", "1536x1536x8192"]) == 0
    out = capsys.readouterr().out
    assert "gemm_bf16_128x144_residual_sm90" in out
    assert "mine " in out


@pytest.mark.parametrize(
    ("config", "problem", "questions"),
    [
        ("d128_causal_bf16", "4096x4096x4096", ["is this a matrix product's size?", "GiB"]),
        ("d128_causal_bf16", "2x32x4096x128", ["is this an array's shape?"]),
        ("d128_causal_bf16", "2x4096x32x128", ["is this an array's shape?"]),
        ("d128_causal_bf16", "64x64x16k", []),
        ("d128_causal_bf16", "64x64x64k", ["arrays take 256 GiB, and an NVIDIA H200 has 141"]),
        ("gemm_bf16_sm90", "2x32x4096", ["is this attention's size?"]),
        ("gemm_bf16_sm90", "2x32x4096x128", ["is this the shape of attention's arrays?"]),
        ("gemm_bf16_sm90", "512kx512kx4k", ["is the size meant?"]),
        ("gemm_bf16_sm90", "16x4096x14336", []),
    ],
)
def test_a_problem_that_is_hardly_meant_is_questioned(
    config: str, problem: str, questions: list[str]
) -> None:
    base = load_config(find_configs([config])[0])
    found = questions_of(choose(base, problem, H200, existing(base)))
    assert len(found) == len(questions)
    assert all(text in line for text, line in zip(questions, found, strict=True))
