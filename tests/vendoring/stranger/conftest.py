"""Vendored folders for the session, to be copied before anything in them is changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fa4gen.cli.main import main
from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit
from tests.vendoring.stranger.tools import C99, Objects, cmake, need

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "cmake"
KERNELS = ("d64_dense_small_bf16", "fa4_d64_dense_bf16", "gemm_bf16_residual_sm90")


def vendor(folder: Path, prefix: str, *configs: str) -> Path:
    assert main(["vendor", "add", *configs, "--into", str(folder), "--prefix", prefix]) == 0
    return folder


def ptx_of(folder: Path, out: Path) -> Path:
    """Compile the folder's kernels to PTX below ``out``: the recorder cannot run machine code."""
    out.mkdir(exist_ok=True)
    compiler = find_compiler("auto")
    for source in sorted(folder.glob("kernels/*.cu")):
        text = source.read_text()
        beside = (source.with_name(source.stem + end) for end in ("_barriers.h", "_device.cuh"))
        headers = {header.name: header.read_text() for header in beside}
        arch = next(word for word in ("sm_90a", "sm_103a", "sm_100a") if f"{word}" in text)
        unit = Unit(source.stem, text, headers, arch)
        (out / f"{source.stem}.ptx").write_text(compiler.build_ptx(unit))
    return out


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Attention for two architectures and a matrix product, with the prefix acme."""
    return vendor(tmp_path_factory.mktemp("stranger") / "acme", "acme", *KERNELS)


@pytest.fixture(scope="session")
def zeta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of the same kernels under another prefix."""
    return vendor(tmp_path_factory.mktemp("stranger") / "zeta", "zeta_two", KERNELS[0])


@pytest.fixture
def acme(pristine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pristine, tmp_path / "acme"))


@pytest.fixture(scope="session")
def compiled(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Objects:
    """The session's folder with its self-test, compiled."""
    objects = Objects(pristine, tmp_path_factory.mktemp("objects"), need("cc"), C99)
    objects.selftest()
    return objects


@pytest.fixture
def objects(compiled: Objects, acme: Path, tmp_path: Path) -> Objects:
    """A copy of the folder and of its objects: what is changed has to be compiled again."""
    build = Path(shutil.copytree(compiled.build, tmp_path / "objects"))
    return Objects(acme, build, compiled.compiler, compiled.flags)


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """examples/cmake as its README says, elsewhere: the program, and the kernels' PTX."""
    there = tmp_path_factory.mktemp("example")
    project = Path(shutil.copytree(EXAMPLE, there / "cmake"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        assert main(["vendor", "update"]) == 0
        assert main(["vendor", "check"]) == 0
    cmake(project, project / "build", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
    return project / "build" / "example", ptx_of(project / "third_party/acme", there / "ptx")
