from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fa4gen.errors import MissingCapabilityError
from fa4gen.toolchain.model import Unit
from fa4gen.toolchain.nvcc import Nvcc, find_nvcc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.toolchain.model import Compiler


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide this machine's toolkit unless a test needs it."""
    for variable in ("FA4GEN_NVCC", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)


def test_where_nvcc_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("path", "path_variable/bin", "home/bin", "named"):
        program(tmp_path / folder / "nvcc")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert find_nvcc() is None
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert find_nvcc() == tmp_path / "path/nvcc"
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "path_variable"))
    assert find_nvcc() == tmp_path / "path_variable/bin/nvcc"
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert find_nvcc() == tmp_path / "home/bin/nvcc"
    monkeypatch.setenv("FA4GEN_NVCC", str(tmp_path / "named/nvcc"))
    assert find_nvcc() == tmp_path / "named/nvcc"


def test_a_wrong_fa4gen_nvcc_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FA4GEN_NVCC", "/no/such/nvcc")
    with pytest.raises(MissingCapabilityError, match="FA4GEN_NVCC is '/no/such/nvcc'"):
        find_nvcc()


def test_no_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingCapabilityError, match="nvcc is not found") as caught:
        Nvcc()
    assert "--compiler nvrtc" in caught.value.problems[0].remedy


def test_a_program_that_is_no_nvcc(tmp_path: Path) -> None:
    nvcc = Nvcc(program(tmp_path / "nvcc", "#!/bin/sh\necho hello\n"))
    with pytest.raises(MissingCapabilityError, match="does not print its version: hello"):
        _ = nvcc.version


def test_a_program_that_does_not_start(tmp_path: Path) -> None:
    nvcc = Nvcc(program(tmp_path / "nvcc", "#!/no/such/shell\n"))
    with pytest.raises(MissingCapabilityError, match="does not start"):
        _ = nvcc.version


def test_a_missing_host_compiler(tmp_path: Path) -> None:
    said = "nvcc fatal : Failed to preprocess host compiler properties."
    text = f"#!/bin/sh\necho '{said}' >&2\nexit 1\n"
    nvcc = Nvcc(program(tmp_path / "nvcc", text))
    with pytest.raises(MissingCapabilityError, match="finds no host compiler"):
        nvcc.build(Unit("k", "", {}, "sm_90a"))


@pytest.mark.compile
def test_options_from_the_environment_do_not_count(
    nvcc: Compiler, sources: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "--no-such-option")
    assert nvcc.build(Unit("clean", sources["clean"], {}, "sm_90a")).cubin


@pytest.mark.compile
def test_nothing_is_left_in_the_working_folder(
    nvcc: Compiler, sources: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = nvcc.build(Unit("clean", sources["clean"], {}, "sm_90a"))
    assert list(tmp_path.iterdir()) == []
    assert str(Path("/tmp")).encode() not in built.cubin
