from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def set_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "layers.set.yaml"
    path.write_text("kernels:\n- gemm_bf16_sm90\n- ./few.yaml\n")
    (tmp_path / "few.yaml").write_text("extends: gemm_bf16_m16_sm90\n")
    return path


@pytest.mark.compile
def test_a_set_is_vendored(
    set_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    assert main(["vendor", set_path.name, "--into", "acme", "--prefix", "acme"]) == 0
    names = {path.name for path in (set_path.parent / "acme").rglob("*.cu")}
    assert {"gemm_bf16_sm90.cu", "few.cu"} <= {name.removeprefix("acme_") for name in names}


def test_a_set_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "no.set.yaml")
    assert main(["vendor", missing, "--into", str(tmp_path / "a"), "--prefix", "acme"]) == 2
    assert "no.set.yaml" in capsys.readouterr().err
