"""Adapters in C++ by the folder's CMake options, where CMake and the packages are."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from fa4gen.cli.main import main

PACKAGES = {"TORCH": ("torch", "2.10"), "JAX": ("jax", None), "TVM_FFI": ("tvm_ffi", None)}


@pytest.fixture(scope="module")
def vendored(tmp_path_factory):
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("no CMake, or no C++ compiler")
    folder = tmp_path_factory.mktemp("cmake") / "acme"
    adapters = [word for name in ("torch", "jax", "tvm-ffi") for word in ("--adapter", name)]
    arguments = ["vendor", "add", "d64_dense_small_bf16", "--into", str(folder), "--prefix", "acme"]
    assert main([*arguments, *adapters]) == 0
    return folder


def configure(folder, build, *options):
    return subprocess.run(
        ["cmake", "-S", str(folder), "-B", str(build), "-DACME_BUILD_TESTS=OFF", *options],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.compile
def test_no_adapter_is_built_unasked(vendored, tmp_path) -> None:
    made = configure(vendored, tmp_path)
    assert made.returncode == 0, made.stderr
    cache = (tmp_path / "CMakeCache.txt").read_text()
    assert all(f"ACME_{name}:BOOL=OFF" in cache for name in PACKAGES)
    assert "CMAKE_CXX_COMPILER:" not in cache


@pytest.mark.compile
def test_a_package_that_is_absent_is_named(vendored, tmp_path) -> None:
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    python.chmod(0o755)
    made = configure(
        vendored, tmp_path / "build", "-DACME_JAX=ON", f"-DPython3_EXECUTABLE={python}"
    )
    assert made.returncode != 0
    assert "ACME_JAX needs jax in" in made.stderr


@pytest.mark.compile
@pytest.mark.parametrize("adapter", PACKAGES)
def test_an_option_builds_the_adapter(vendored, tmp_path, adapter) -> None:
    package, version = PACKAGES[adapter]
    pytest.importorskip(package, minversion=version, reason=f"{package} is not installed")
    made = configure(
        vendored, tmp_path, f"-DACME_{adapter}=ON", f"-DPython3_EXECUTABLE={sys.executable}"
    )
    assert made.returncode == 0, made.stderr
    built = subprocess.run(
        ["cmake", "--build", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert list(tmp_path.glob(f"adapters/*/libacme_{adapter.lower()}.so"))
