from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main
from fa4gen.vendoring.lock import read_lock

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
    assert main(["vendor", "add", set_path.name, "--into", "acme", "--prefix", "acme"]) == 0
    names = {path.name for path in (set_path.parent / "acme").rglob("*.cu")}
    assert {"gemm_bf16_sm90.cu", "few.cu"} <= {name.removeprefix("acme_") for name in names}


TABLE = """\
base: gemm_bf16_sm90
chip: NVIDIA H200
kernels: [gemm_bf16_sm90, ./few.yaml]
regions:
- {where: {m: [1, 16], n: 4096, k: 4096}, kernel: few}
- {where: {m: [17, 4096]}, kernel: gemm_bf16_sm90}
"""


@pytest.mark.compile
def test_a_table_is_vendored_with_its_regions(
    set_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    table = set_path.parent / "layers.tuning.yaml"
    table.write_text(TABLE)
    folder = set_path.parent / "acme"
    project = '[[vendor]]\ninto = "acme"\nprefix = "acme"\nconfigs = ["layers.tuning.yaml"]\n'
    (set_path.parent / "fa4gen.toml").write_text(project)
    assert main(["vendor", "update"]) == 0
    lock = read_lock(folder)
    assert lock.table is not None
    assert lock.table.chip == "NVIDIA H200"
    assert [region.kernel for region in lock.table.regions] == ["few", "gemm_bf16_sm90"]
    launcher = (folder / "src" / "launcher.c").read_text(encoding="utf-8")
    assert "{1, { 1, 4096, 4096, 0, 0 }, { 16, 4096, 4096," in launcher
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["vendor", "check"]) == main(["vendor", "update"]) == 0
    (set_path.parent / "fa4gen.toml").unlink()
    assert main(["vendor", "check", "acme"]) == main(["vendor", "update", "acme"]) == 0
    assert {path: path.read_bytes() for path in before} == before

    (set_path.parent / "fa4gen.toml").write_text(project)
    table.write_text(TABLE.replace("17", "18"))
    capsys.readouterr()
    assert main(["vendor", "check"]) == 3
    assert "the regions of the tuning tables changed" in capsys.readouterr().out
    assert main(["vendor", "update"]) == 0
    assert main(["vendor", "check"]) == 0


def test_a_set_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = str(tmp_path / "no.set.yaml")
    assert main(["vendor", "add", missing, "--into", str(tmp_path / "a"), "--prefix", "acme"]) == 2
    assert "no.set.yaml" in capsys.readouterr().err
