"""The layout for Hugging Face's loader: built by CMake, and loaded by the package `kernels`."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from fa4gen.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

CONFIGS = ("d64_dense_small_bf16", "fa4_d128_causal_bf16")
pytestmark = pytest.mark.compile


def cmake(*words: object) -> subprocess.CompletedProcess[str]:
    command = ["cmake", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def vendored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("cmake") is None or platform.system() != "Linux":
        pytest.skip("no CMake, or not Linux")
    folder = tmp_path_factory.mktemp("hf") / "acme"
    words = ["vendor", "add", *CONFIGS, "--into", str(folder), "--prefix", "acme"]
    assert main([*words, "--layout", "hf-kernels"]) == 0
    return folder


@pytest.fixture(scope="module")
def repository(vendored: Path) -> Path:
    """The folder that a repository of the Hub would hold."""
    build = vendored.parent / "build"
    options = ("-DBUILD_SHARED_LIBS=ON", "-DACME_HF_KERNELS=ON", "-DACME_BUILD_TESTS=OFF")
    for words in (("-S", vendored, "-B", build, *options), ("--build", build)):
        done = cmake(*words)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "hf-kernels"


@pytest.fixture(scope="module")
def variant(repository: Path) -> Path:
    (folder,) = (repository / "build").iterdir()
    return folder


def cuda_of(vendored: Path) -> str:
    lock = json.loads((vendored / "fa4gen.lock").read_text())
    return ".".join(lock["kernels"][0]["compiler_version"].split(".")[:2])


def test_a_variant_of_cuda_and_machine(vendored: Path, variant: Path) -> None:
    cuda = cuda_of(vendored).replace(".", "")
    assert variant.name == f"torch-stable-abi29-cu{cuda}-{platform.machine()}-linux"
    assert {file.name for file in variant.iterdir()} == {
        "__init__.py", "acme_torch.py", "libacme.so", "metadata.json"
    }  # fmt: skip


def test_a_static_library_is_refused(vendored: Path, tmp_path: Path) -> None:
    done = cmake("-S", vendored, "-B", tmp_path, "-DACME_HF_KERNELS=ON")
    assert done.returncode
    assert "ACME_HF_KERNELS needs -DBUILD_SHARED_LIBS=ON" in done.stderr


@pytest.mark.parametrize(
    ("machine", "fits"),
    [
        (("same", 0, "2.9"), True),
        (("same", 1, "2.13"), True),
        (("same", 0, "2.8"), False),
        (("same", -1, "2.9"), False),
        (("other", 0, "2.9"), False),
    ],
)
def test_the_loader_takes_it_where_cuda_and_torch_suffice(
    vendored: Path, repository: Path, machine: tuple[str, int, str], fits: bool
) -> None:
    variants = pytest.importorskip("kernels.variants", reason="kernels is not installed")
    backends = pytest.importorskip("kernels.backends")
    from packaging.version import Version

    cpu, newer, torch = machine
    major, minor = map(int, cuda_of(vendored).split("."))
    if minor + newer < 0:
        major, newer = major - 1, 0
    here = variants.get_variants_local(repository / "build")
    assert len(here) == 1
    found, _ = variants._resolve_variant_for_system(
        variants=here,
        selected_backend=backends.CUDA(version=Version(f"{major}.{minor + newer}")),
        cpu=platform.machine() if cpu == "same" else "riscv64",
        os="linux",
        torch_version=Version(torch),
        torch_cxx11_abi=True,
        tvm_ffi_version=None,
    )
    assert bool(found) == fits


def test_the_loader_reads_which_gpus_it_runs_on(variant: Path) -> None:
    archs = pytest.importorskip("kernels.archs", reason="kernels is not installed")
    from kernels._rust import Metadata

    metadata = Metadata.read_from_file(variant / "metadata.json")
    assert str(metadata.name.python_name) == "acme_kernels"
    found = metadata.backend.archs
    takes = {gpu for gpu in ((8, 0), (9, 0), (10, 0), (10, 3), (12, 0))
             if archs._supports_cuda_capability(found, gpu)}  # fmt: skip
    assert takes == {(9, 0), (10, 0)}


def test_the_loader_imports_it(variant: Path) -> None:
    torch = pytest.importorskip("torch", minversion="2.9", reason="no PyTorch 2.9 or newer")
    kernels = pytest.importorskip("kernels", reason="kernels is not installed")
    module = kernels.get_local_kernel(variant)  # by its own path also without CUDA
    assert set(module.__all__) == set(CONFIGS)
    with pytest.raises(ValueError, match="query"):
        module.d64_dense_small_bf16(*torch.zeros(3, 1, 64, 1, 64))  # float32
    adapter = module.acme_torch
    assert adapter._library_path() == variant / "libacme.so"
    assert adapter._library().acme_status_text(0)
