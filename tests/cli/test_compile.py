from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.cli.main import main
from fa4gen.errors import MissingCapabilityError
from fa4gen.toolchain.compile import find_compiler

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = "kernel: attention\narch: sm_90a\ndtype: bf16\ndepth: 64\n"
KERNEL = """\
#include "{{ plan.name }}_barriers.h"
extern "C" __global__ __launch_bounds__(128) void {{ plan.entry_point }}(float* out) {
{% include "body.j2" %}
}
"""
GOOD = "  out[threadIdx.x] = kDepth;\n"
UNDEFINED = "  // depth {{ plan.depth }}\n  out[0] = wrong_name;\n"
LOCAL = """\
  float a[64];
  for (int i = 0; i < 64; ++i) a[i] = out[i];
  for (int i = 0; i < 64; ++i) a[int(out[i]) & 63] += i;
  out[threadIdx.x] = a[int(out[threadIdx.x]) & 63];
"""
WARNING = "  int never_used;\n  out[threadIdx.x] = kDepth;\n"

pytestmark = pytest.mark.compile


@pytest.fixture(autouse=True)
def work(mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder: kernels/one.yaml, small templates in mine/, a cache of its own."""
    try:
        find_compiler("nvrtc")
    except MissingCapabilityError as error:
        pytest.skip(error.problems[0].message)
    (mine / "mine/attention_sm90/kernel.cu.j2").write_text(KERNEL)
    depth = "constexpr int kDepth = {{ plan.depth }};\n"
    (mine / "mine/device/rings/barriers.h.j2").write_text(depth)
    set_body(mine, GOOD)
    (mine / "kernels").mkdir()
    (mine / "kernels/one.yaml").write_text(CONFIG)
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(mine / "cache"))
    return mine


def set_body(work: Path, text: str) -> None:
    (work / "mine/body.j2").write_text(text)


def compile_(*args: str) -> int:
    return main(["compile", "kernels", "--templates", "mine", *args])


def compile_json(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, Any]:
    status = compile_("--format", "json", *args)
    return status, json.loads(capsys.readouterr().out)


def test_a_kernel_that_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_() == 0
    captured = capsys.readouterr()
    header, row, summary = captured.out.splitlines()
    assert header.split()[:3] == ["kernel", "compiler", "registers"]
    assert row.startswith("one     nvrtc ")
    assert row.endswith("compiled")
    assert summary == "1 of 1 kernel compiled with a clean log. Nothing was run."
    assert captured.err.startswith("compiling 1 kernel with nvrtc ")
    assert compile_() == 0
    assert "(1 from the cache)" in capsys.readouterr().out
    assert compile_("--no-cache") == 0
    assert "cache" not in capsys.readouterr().out


def test_the_json_document(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, document = compile_json(capsys, "-o", "out")
    (kernel,) = document["kernels"]
    assert (status, document["exit_status"]) == (0, 0)
    assert (kernel["name"], kernel["arch"], kernel["proof"]) == ("one", "sm_90a", "compiled")
    assert kernel["config"] == "kernels/one.yaml"
    assert kernel["registers"] > 0
    assert kernel["dynamic_shared_bytes"] > 0
    assert kernel["cubin_bytes"] == (work / "out/sm_90a/one/one.cubin").stat().st_size
    assert kernel["problems"] == []


def test_outputs_are_kept(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_("-o", "out") == 0
    folder = work / "out/sm_90a/one"
    assert {p.name for p in folder.iterdir()} == {
        "one.ptx",
        "one.cubin",
        "one.log",
        "one.compile.json",
    }
    assert ".target sm_90a" in (folder / "one.ptx").read_text()
    manifest = json.loads((folder / "one.compile.json").read_text())
    assert manifest["config"]["depth"] == 64
    assert manifest["proof"] == "compiled"
    before = {p: p.stat().st_mtime_ns for p in folder.iterdir()}
    (folder / "one.ptx").write_text("edited")
    assert compile_("-o", "out") == 3
    assert "one.ptx: not overwritten" in capsys.readouterr().err
    assert compile_("-o", "out", "--force") == 0
    assert before.keys() == set(folder.iterdir())


def test_an_error_names_the_generated_and_the_template_line(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_body(work, UNDEFINED)
    assert compile_() == 1
    captured = capsys.readouterr()
    assert "0 of 1 kernel compiled with a clean log; 1 failed" in captured.out
    place, generated, template, *_ = captured.err.splitlines()[1:]
    assert place == 'sm_90a/one/one.cu:4:12: identifier "wrong_name" is undefined'
    assert generated == "  generated: out[0] = wrong_name;"
    assert template == "  template: mine/body.j2:2: out[0] = wrong_name;"


def test_an_error_names_the_file_on_disk_where_there_is_one(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_body(work, UNDEFINED)
    assert main(["render", "kernels", "--templates", "mine"]) == 0
    capsys.readouterr()
    assert compile_("--format", "github") == 1
    err = capsys.readouterr().err
    assert "::error file=generated/sm_90a/one/one.cu,line=4,col=12::identifier" in err


def test_local_memory_fails(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_body(work, LOCAL)
    assert compile_() == 1
    captured = capsys.readouterr()
    assert "lint: stack" in captured.out
    assert "stack: an array is in local memory" in captured.err
    assert "256 bytes stack frame" in captured.err


def test_warnings_are_said(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    set_body(work, WARNING)
    assert compile_() == 0
    captured = capsys.readouterr()
    assert "compiled; 1 warning" in captured.out
    assert "warning: source:" in captured.err
    assert "never_used" in captured.err


def test_all_failures_are_reported(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "kernels/two.yaml").write_text(CONFIG.replace("64", "128"))
    (work / "kernels/three.yaml").write_text(CONFIG.replace("64", "96"))
    set_body(work, "{% if plan.depth != 96 %}\n" + UNDEFINED + "{% endif %}\n  out[1] = 0;\n")
    status, document = compile_json(capsys, "-j", "2")
    assert status == 1
    results = {k["name"]: (k["proof"], len(k["problems"])) for k in document["kernels"]}
    assert results == {"one": ("rendered", 1), "two": ("rendered", 1), "three": ("compiled", 0)}


def test_an_absent_compiler(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("FA4GEN_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(work))
    assert compile_("--compiler", "nvcc") == 4
    assert "nvcc is not found" in capsys.readouterr().err


def test_an_unwritable_cache_is_only_noted(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FA4GEN_CACHE_DIR", str(work / "kernels/one.yaml/cache"))
    assert compile_() == 0
    assert "note: not kept in the cache" in capsys.readouterr().err
