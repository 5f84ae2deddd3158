"""A small matrix product of each architecture, from its config to the emulator's verdict."""

from __future__ import annotations

import json

import pytest

from fa4gen.cli.main import main
from fa4gen.runtime.device import find_device

CONFIG = """kernel: gemm
arch: {}
dtype: bf16
residual: {}
BM: 64
BN: 64
BK: 64
"""


@pytest.mark.compile
@pytest.mark.parametrize(("arch", "residual"), [("sm_90a", "matrix"), ("sm_100a", "row")])
def test_verify_emulates_a_matrix_product(arch, residual, tmp_path, monkeypatch, capsys) -> None:
    if find_device(arch) is not None:
        pytest.skip("this machine has a GPU")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.yaml").write_text(CONFIG.format(arch, residual))
    cases = ("size/33*", "depth/0", "residual/*", "batch/shared")
    options = [word for case in cases for word in ("--cases", case)]
    assert main(["verify", "g.yaml", "--seed", "3", "--format", "json", *options]) == 0
    [kernel] = json.loads(capsys.readouterr().out)["kernels"]
    assert (kernel["proof"], kernel["passed"]) == ("emulated", True)
    assert kernel["num_cases"] == (5 if residual == "matrix" else 4)


def test_cases_are_listed(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.yaml").write_text(CONFIG.format("sm_90a", "matrix"))
    assert main(["verify", "g.yaml", "--list-cases", "--cases", "factor/beta_0*"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:5] == ["case", "batch", "m", "n", "k"]
    assert "NaN in c, beta 0" in lines[2]
