from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main
from fa4gen.config.find import find_configs
from fa4gen.config.load import load_config
from fa4gen.tune.explain import choose, why
from fa4gen.tune.model.chips import H200

if TYPE_CHECKING:
    from pathlib import Path


def test_a_table_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "gemm_bf16_sm90", "--problem", "16x4096x14336"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "gemm_bf16_sm90 at 16x4096x14336, NVIDIA H200"
    rows = {row.split()[0]: row.split() for row in lines[2:13]}
    assert lines[2].startswith("gemm_bf16_m16_sm90 ")
    first, own = rows["gemm_bf16_m16_sm90"], rows["gemm_bf16_sm90"]
    assert (first[1], first[3], first[-1]) == ("shipped", "1.00", "memory")
    assert own[1] == "config"
    assert float(own[2]) > 3 * float(first[2])
    text = "\n".join(lines)
    assert "gemm_bf16_m16_sm90: " in text
    assert "64 CTAs in 1 wave of 132, 48% filled" in text
    assert "It saves: products " in text
    assert "us is predicted, not measured" in text
    assert "fitted to 2720 figures" in text


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
