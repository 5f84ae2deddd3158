from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.cli.main import main
from fa4gen.runtime.device import all_devices
from fa4gen.toolchain.survey import Tool
from fa4gen.version import __version__

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("FA4GEN_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))


def doctor_json(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, Any]:
    status = main(["doctor", "--format", "json", *args])
    document = json.loads(capsys.readouterr().out)
    document["tools"] = {tool["name"]: tool for tool in document["tools"]}
    return status, document


@pytest.mark.compile
@pytest.mark.usefixtures("no_nvcc")
def test_the_tables(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"fa4gen             ok      {__version__}" in out
    assert "nvcc               absent  nvcc is not found" in out
    assert f"{cache}: 0 entries, 0.0 MiB" in out
    assert "render, check, explain, list, schema  yes" in out
    assert not cache.exists()


@pytest.mark.compile
@pytest.mark.usefixtures("no_nvcc")
def test_the_json_document(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, document = doctor_json(capsys)
    assert status == document["exit_status"] == 0
    tools = document["tools"]
    assert tools["fa4gen"]["details"] == __version__
    assert (tools["nvcc"]["state"], tools["nvcc"]["archs"]) == ("absent", [])
    assert tools["cache"]["details"].startswith(f"{cache}: ")
    assert document["problems"] == []
    commands = {name: c["here"] for c in document["commands"] for name in c["commands"]}
    [emulate] = [c for c in document["commands"] if c["commands"] == ["emulate"]]
    assert emulate["how_far"] == "any PTX for sm_90a, sm_100a, sm_103a, sm_100f"
    assert commands["render"] == "yes"
    assert commands["compile"] == ("yes" if tools["nvrtc"]["archs"] else "no")


@pytest.mark.compile
@pytest.mark.usefixtures("no_nvcc")
def test_required_and_absent(capsys: pytest.CaptureFixture[str]) -> None:
    status, document = doctor_json(capsys, "--require-nvcc")
    assert status == 4
    assert [p["message"] for p in document["problems"]] == ["nvcc is not found"]
    assert main(["doctor", "--require-nvcc", "--format", "github"]) == 4
    assert "::error::nvcc is not found" in capsys.readouterr().err


@pytest.mark.skipif(bool(all_devices()), reason="this machine has a GPU")
def test_a_gpu_that_is_required_and_absent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--require-gpu"]) == 4
    captured = capsys.readouterr()
    assert "error: no GPU here runs generated kernels: no NVIDIA driver" in captured.err
    assert "GPU                absent" in captured.out


@pytest.mark.gpu
def test_a_gpu_that_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    status, document = doctor_json(capsys, "--require-gpu")
    assert status == 0
    assert "runs sm_90a" in document["tools"]["GPU 0"]["details"]
    assert document["tools"]["driver"]["state"] == "ok"
    [verify] = [c for c in document["commands"] if "verify" in c["commands"]]
    assert verify["how_far"].startswith("runs sm_")
    assert verify["how_far"].endswith(", emulates the rest")


def test_a_cache_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(tmp_path / "file/cache"))
    status, document = doctor_json(capsys)
    assert status == 0
    assert document["tools"]["cache"]["state"] == "problem"
    assert "cannot write to" in document["tools"]["cache"]["details"]


@pytest.mark.usefixtures("cache")
def test_the_compilers_are_tried_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = threading.Barrier(2, timeout=60)

    def survey(name: str) -> Tool:
        both.wait()  # BrokenBarrierError when nobody else comes
        return Tool(name, "ok", "13.0", archs=("sm_90a",))

    monkeypatch.setattr("fa4gen.toolchain.survey.survey_compiler", survey)
    _, document = doctor_json(capsys)
    assert {"nvrtc", "nvcc"} <= document["tools"].keys()
