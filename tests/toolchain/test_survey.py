from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import CompileError
from fa4gen.toolchain.cache import Cache, Entry
from fa4gen.toolchain.model import Built, Unit
from fa4gen.toolchain.nvrtc import NvrtcProgram
from fa4gen.toolchain.survey import PROBES, survey_cache, survey_compiler, survey_packages

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.toolchain.model import Compiler


def test_packages() -> None:
    tools = {tool.name: tool for tool in survey_packages()}
    assert tools["jinja2"].state == "ok"
    assert tools["jinja2"].details.startswith("3.")
    assert tools["torch"].state in ("ok", "absent")


@pytest.mark.compile
def test_compilers_are_tried_out(compiler: Compiler) -> None:
    name = compiler.name
    assert name in ("nvrtc", "nvcc")
    tool = survey_compiler("nvrtc" if name == "nvrtc" else "nvcc")
    assert tool.details.startswith(f"{compiler.version} for sm_90a")
    assert "sm_90a" in tool.archs
    assert "/" in tool.details


@pytest.mark.compile
@pytest.mark.parametrize("arch", PROBES)
def test_a_probe_tells_exact_architectures_apart(arch: str, compiler: Compiler) -> None:
    assert compiler.build(Unit("probe", PROBES[arch], {}, arch)).cubin
    with pytest.raises(CompileError):
        compiler.build(Unit("probe", PROBES[arch], {}, arch[:-1]))


@pytest.mark.compile
def test_nvrtc_compiles_once_for_each_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_program = NvrtcProgram.compile

    def compile_it(self: NvrtcProgram, options: tuple[str, ...]) -> None:
        compiled.append(options)
        compile_program(self, options)

    monkeypatch.setattr(NvrtcProgram, "compile", compile_it)
    tool = survey_compiler("nvrtc")
    assert tool.details.partition(" ")[0].count(".") == 2
    assert len(compiled) == len(tool.archs) == len(PROBES)  # none for the version


def test_an_absent_compiler_has_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("FA4GEN_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    tool = survey_compiler("nvcc")
    assert (tool.state, tool.archs, tool.details) == ("absent", (), "nvcc is not found")
    assert "FA4GEN_NVCC" in tool.remedy


def test_the_cache_is_tried_out_and_left_alone(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "not" / "there")
    assert survey_cache(cache).state == "ok"
    assert list(tmp_path.iterdir()) == []
    cache.store("ab" + "0" * 62, {}, Entry(Built("ptx", b"cubin", ""), 0.0))
    tool = survey_cache(cache)
    assert (tool.state, tool.details) == ("ok", f"{cache.root}: 1 entry, 0.0 MiB")


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    tool = survey_cache(Cache(tmp_path / "file" / "cache"))
    assert tool.state == "problem"
    assert f"cannot write to {tmp_path / 'file'}" in tool.details
