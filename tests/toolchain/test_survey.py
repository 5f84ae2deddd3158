from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import CompileError
from fa4gen.toolchain.cache import Cache, Entry
from fa4gen.toolchain.model import Built, Unit
from fa4gen.toolchain.nvrtc_program import NvrtcProgram
from fa4gen.toolchain.survey import PROBES, survey_cache, survey_compiler, survey_packages

if TYPE_CHECKING:
    from pathlib import Path

    from fa4gen.toolchain.model import Compiler


def test_packages() -> None:
    reports = {report.name: report for report in survey_packages()}
    assert reports["jinja2"].version.startswith("3.")
    assert reports["jinja2"].problem == ""
    assert reports["torch"].optional


@pytest.mark.compile
def test_compilers_are_tried_out(compiler: Compiler) -> None:
    name = compiler.name
    assert name in ("nvrtc", "nvcc")
    report = survey_compiler("nvrtc" if name == "nvrtc" else "nvcc")
    assert report.version == compiler.version
    assert "sm_90a" in report.archs
    assert report.path


@pytest.mark.compile
@pytest.mark.parametrize("arch", PROBES)
def test_a_probe_tells_exact_architectures_apart(arch: str, compiler: Compiler) -> None:
    assert compiler.build(Unit("probe", PROBES[arch], {}, arch)).cubin
    with pytest.raises(CompileError):
        compiler.build(Unit("probe", PROBES[arch], {}, arch.removesuffix("a")))


@pytest.mark.compile
def test_nvrtc_compiles_once_for_each_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_program = NvrtcProgram.compile

    def compile_it(self: NvrtcProgram, options: tuple[str, ...]) -> None:
        compiled.append(options)
        compile_program(self, options)

    monkeypatch.setattr(NvrtcProgram, "compile", compile_it)
    report = survey_compiler("nvrtc")
    assert report.version.count(".") == 2
    assert len(compiled) == len(report.archs) == len(PROBES)  # none for the version


def test_an_absent_compiler_has_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("FA4GEN_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    report = survey_compiler("nvcc")
    assert (report.version, report.archs) == ("", ())
    assert report.problem == "nvcc is not found"
    assert "FA4GEN_NVCC" in report.remedy


def test_the_cache_is_tried_out_and_left_alone(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "not" / "there")
    assert survey_cache(cache).writable
    assert list(tmp_path.iterdir()) == []
    cache.store("ab" + "0" * 62, {}, Entry(Built("ptx", b"cubin", ""), 0.0))
    report = survey_cache(cache)
    assert (report.entries, report.writable, report.problem) == (1, True, "")
    assert report.bytes > 8


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    report = survey_cache(Cache(tmp_path / "file" / "cache"))
    assert not report.writable
    assert str(tmp_path / "file") in report.problem
