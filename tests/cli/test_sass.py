from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.cli.main import main
from fa4gen.errors import MissingCapabilityError
from fa4gen.toolchain import disassembly
from tests.shipped import files_of

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = "d128_causal_bf16"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembly, "_installed", lambda: None)


def program(folder: Path, name: str) -> None:
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


@pytest.mark.parametrize("cuobjdump", [False, True])
def test_without_a_disassembler(
    cuobjdump: bool,
    without: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if cuobjdump:
        program(tmp_path, "cuobjdump")
    assert main(["sass", CONFIG]) == 4
    said = capsys.readouterr().err
    assert "nvdisasm is not found" in said
    assert "pip install nvidia-cuda-nvdisasm" in said
    assert ("cuobjdump, which is there, shows no source lines" in said) == cuobjdump


def test_the_one_on_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: None
) -> None:
    program(tmp_path, "nvdisasm")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert disassembly.find_nvdisasm() == tmp_path / "nvdisasm"


@pytest.mark.parametrize("lines", ["9-", "a", "-3"])
def test_lines_that_are_none(lines: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sass", CONFIG, "--lines", lines]) == 2
    assert "is not FIRST-LAST" in capsys.readouterr().err


@pytest.mark.compile
def test_instructions_under_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    from fa4gen.config.selection import select_configs

    try:
        disassembly.find_nvdisasm()
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    source = files_of(select_configs([CONFIG])[0])[".cu"].splitlines()
    assert main(["sass", CONFIG, "--format", "json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["lines"]
    assert all(row["source"] == source[row["line"] - 1] for row in rows if row["line"])
    wgmmas = [row["line"] for row in rows for one in row["instructions"] if "HGMMA" in one["text"]]
    assert len(wgmmas) > 20
    assert all(wgmmas)

    line = next(row["line"] for row in rows if "FMNMX" in str(row["instructions"]))
    assert main(["sass", CONFIG, "--lines", f"{line}"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"{line:5}  {source[line - 1]}"
    assert any("FMNMX" in text for text in shown[1:])
