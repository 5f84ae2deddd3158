"""Triton's launcher, unchanged: C code that it compiles, machine code, tensor descriptors."""

from __future__ import annotations

import json
import sys
import sysconfig
from pathlib import Path

import pytest

from fa4gen.cli.main import main

pytestmark = pytest.mark.triton
PROGRAM = Path(__file__).with_name("triton_program.py")


def test_tritons_own_launcher_runs(recorder_cache, tmp_path, capsys, monkeypatch) -> None:
    pytest.importorskip("triton")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("Triton compiles its launcher with Python.h, which is not on this machine")
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(recorder_cache))
    # Triton loads machine code; the PTX is beside it in its cache
    status = main(
        ["record", str(tmp_path / "out"), "--ptx", str(cache), "--format", "json", "--",
         sys.executable, str(PROGRAM)],
    )  # fmt: skip
    found = json.loads(capsys.readouterr().out)
    assert (status, found["status"]) == (0, 0)
    assert [one["entry"] for one in found["launches"]] == ["add", "matmul"]
    severities = {each["severity"] for one in found["launches"] for each in one["findings"]}
    assert "error" not in severities
