"""A wheel of fa4gen vendors into a stranger's project and is deleted; then everything is built."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from fa4gen.toolchain.nvcc import find_nvcc
from tests.vendoring.stranger.conftest import KERNELS
from tests.vendoring.stranger.tools import (
    CXX17,
    WARNINGS,
    Objects,
    call,
    cmake,
    need,
    sources,
)
from tests.wheel import build, install, run

pytestmark = pytest.mark.package
STRICT = f"-DCMAKE_C_FLAGS={' '.join(WARNINGS)}"
PROGRAM = """\
#include <acme.h>
#include <cstdio>

int main() {
  acme_attention_args attention = {};
  attention.struct_size = sizeof attention;
  acme_gemm_args gemm = {};
  gemm.struct_size = sizeof gemm;
  const int statuses[] = {acme_d64_dense_small_bf16(&attention, nullptr),
                          acme_fa4_d64_dense_bf16(&attention, nullptr),
                          acme_gemm_bf16_residual_sm90(&gemm, nullptr)};
  for (const int status : statuses) std::printf("%s\\n", acme_status_text(status));
  std::printf("%d kernels\\n", acme_kernel_count());
  return 0;
}
"""
HEAD = "cmake_minimum_required(VERSION 3.18)\nproject(stranger LANGUAGES CXX)\n"
TAIL = """\
add_executable(program main.cpp)
target_compile_features(program PRIVATE cxx_std_17)
target_compile_options(program PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_link_libraries(program PRIVATE acme::acme)
"""


@pytest.fixture(scope="session")
def vendored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder, vendored by an installed wheel into an empty project; fa4gen is gone."""
    there = tmp_path_factory.mktemp("package")
    programs = install(build("wheel", there / "wheel"), there / "venv")
    project = there / "project"
    project.mkdir()
    words = ("vendor", "add", *KERNELS, "--into", "acme", "--prefix", "acme")
    cache = {"FA4GEN_CACHE_DIR": str(there / "cache")}
    done = run(programs / "fa4gen", *words, cwd=project, **cache)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(programs.parent)
    shutil.rmtree(there / "wheel")
    return project / "acme"


@pytest.fixture
def project(vendored: Path, tmp_path: Path) -> Path:
    """An empty project but for a program and the vendored folder."""
    folder = tmp_path / "project"
    shutil.copytree(vendored, folder / "third_party" / "acme")
    (folder / "main.cpp").write_text(PROGRAM)
    return folder


def has_built(project: Path, lists: str, *options: str, **environment: str) -> None:
    """Build the project with these CMake commands and run its program."""
    (project / "CMakeLists.txt").write_text(HEAD + lists + TAIL)
    cmake(project, project / "build", *options)
    said = call(project / "build" / "program", cwd=project, **environment)
    assert said.endswith("3 kernels\n")
    assert len(said.splitlines()) == 4
    assert "no status of this library" not in said


def test_the_wheel_vendors_what_the_checkout_does(vendored: Path, pristine: Path) -> None:
    paths = {path.relative_to(pristine) for path in pristine.rglob("*") if path.is_file()}
    assert paths == {path.relative_to(vendored) for path in vendored.rglob("*") if path.is_file()}
    for path in paths - {Path("fa4gen.lock")}:  # which names the commit of a checkout
        assert (vendored / path).read_bytes() == (pristine / path).read_bytes(), path


@pytest.mark.parametrize("shared", ["OFF", "ON"])
@pytest.mark.parametrize(("c", "cxx"), [("gcc", "g++"), ("clang", "clang++")])
def test_add_subdirectory(project: Path, c: str, cxx: str, shared: str) -> None:
    compilers = (f"-DCMAKE_C_COMPILER={need(c)}", f"-DCMAKE_CXX_COMPILER={need(cxx)}")
    options = (STRICT, f"-DBUILD_SHARED_LIBS={shared}", "-DACME_BUILD_TESTS=ON")
    has_built(project, "add_subdirectory(third_party/acme)\n", *compilers, *options)
    said = call(project / "build/third_party/acme/acme_selftest", "--quick", cwd=project)
    assert "library: passed: 3 kernels" in said
    suffix = ".so" if shared == "ON" else ".a"
    assert (project / f"build/third_party/acme/libacme{suffix}").exists()


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_as_cxx17(vendored: Path, tmp_path: Path, compiler: str) -> None:
    flags = (*WARNINGS, *CXX17)
    program = Objects(vendored, tmp_path / "objects", need(compiler), flags).selftest()
    assert "library: passed: 3 kernels" in call(program, "--quick", cwd=tmp_path)


def test_a_shared_library_exports_what_the_header_declares(vendored: Path, tmp_path: Path) -> None:
    need("nm")
    cmake(vendored, tmp_path / "build", "-DBUILD_SHARED_LIBS=ON", "-DACME_BUILD_TESTS=OFF")
    table = call("nm", "-D", "--defined-only", tmp_path / "build/libacme.so", cwd=tmp_path)
    exported = {line.split()[-1] for line in table.splitlines()}
    header = (vendored / "include/acme.h").read_text()
    declared = {
        line.partition("(")[0].split()[-1].lstrip("*")
        for line in header.splitlines()
        if line.startswith("ACME_API ")
    }
    assert exported == declared
    assert len(declared) > 20


def test_fetch_content(project: Path) -> None:
    lists = (
        "include(FetchContent)\n"
        "FetchContent_Declare(acme SOURCE_DIR ${CMAKE_CURRENT_SOURCE_DIR}/third_party/acme)\n"
        "FetchContent_MakeAvailable(acme)\n"
    )
    has_built(project, lists)
    # a part of another project neither builds its tests nor installs itself, unless asked
    assert not (project / "build/_deps/acme-build/acme_selftest").exists()
    call("cmake", "--install", "build", "--prefix", project / "without", cwd=project)
    assert not (project / "without").exists()
    call("cmake", "-DACME_INSTALL=ON", "build", cwd=project)
    call("cmake", "--install", "build", "--prefix", project / "with", cwd=project)
    assert (project / "with/include/acme.h").exists()


@pytest.mark.parametrize("shared", ["OFF", "ON"])
def test_after_an_install(project: Path, tmp_path: Path, shared: str) -> None:
    """By find_package and by pkg-config, from a tree that was moved after the install."""
    built, folder = tmp_path / "built", tmp_path / "moved"
    options = (f"-DBUILD_SHARED_LIBS={shared}", "-DCMAKE_INSTALL_LIBDIR=lib/triplet")
    cmake(project / "third_party/acme", built, *options, "-DACME_BUILD_TESTS=OFF")
    call("cmake", "--install", built, "--prefix", tmp_path / "first", cwd=tmp_path)
    (tmp_path / "first").rename(folder)
    shutil.rmtree(project / "third_party")
    shutil.rmtree(built)
    packages = folder / "lib/triplet"
    has_built(project, "find_package(acme 1 REQUIRED)\n", f"-Dacme_DIR={packages}/cmake/acme")

    need("pkg-config")
    where = {"PKG_CONFIG_PATH": str(packages / "pkgconfig")}
    flags = call("pkg-config", "--cflags", "--libs", "acme", cwd=project, **where).split()
    assert ("-DACME_SHARED" in flags) == (shared == "ON")
    call(need("g++"), *WARNINGS, *CXX17, "main.cpp", *flags, "-o", "by_pkg_config", cwd=project)
    said = call("./by_pkg_config", cwd=project, LD_LIBRARY_PATH=str(packages))
    assert said.endswith("3 kernels\n")


def test_another_major_version_is_refused(project: Path, tmp_path: Path) -> None:
    cmake(project / "third_party/acme", tmp_path / "built", "-DACME_BUILD_TESTS=OFF")
    call("cmake", "--install", tmp_path / "built", "--prefix", tmp_path / "there", cwd=tmp_path)
    (project / "CMakeLists.txt").write_text(HEAD + "find_package(acme 2 REQUIRED)\n" + TAIL)
    where = f"-DCMAKE_PREFIX_PATH={tmp_path / 'there'}"
    said = call("cmake", "-S", ".", "-B", "build", where, cwd=project, status=1)
    said = " ".join(said.split())
    assert "compatible with requested version" in said


def test_two_prefixes_in_one_program(vendored: Path, zeta: Path, tmp_path: Path) -> None:
    """Their entry points have other names, so that the machine code differs."""
    (tmp_path / "main.c").write_text(
        '#include "acme.h"\n#include "zeta_two.h"\n#include <stdio.h>\n#include <string.h>\n'
        "int main(void) {\n"
        "  char a[65], z[65];\n"
        "  const acme_kernel *ours = acme_d64_dense_small_bf16_kernel();\n"
        "  const zeta_two_kernel *theirs = zeta_two_d64_dense_small_bf16_kernel();\n"
        "  if (acme_kernel_sha256(ours, a) || zeta_two_kernel_sha256(theirs, z)) return 1;\n"
        '  printf("%d %d %d\\n", acme_kernel_count(), zeta_two_kernel_count(), !strcmp(a, z));\n'
        "  return 0;\n}\n"
    )
    (tmp_path / "CMakeLists.txt").write_text(
        HEAD.replace("CXX", "C")
        + "".join(f"add_subdirectory({folder} {folder.name})\n" for folder in (vendored, zeta))
        + "add_executable(two main.c)\n"
        + "target_link_libraries(two PRIVATE acme::acme zeta_two::zeta_two)\n"
    )
    cmake(tmp_path, tmp_path / "build")
    assert call("build/two", cwd=tmp_path) == "3 1 0\n"


def test_from_source(zeta: Path, tmp_path: Path) -> None:
    """Machine code by the user's own nvcc, embedded as it is."""
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("nvcc is not on this machine")
    build = tmp_path / "build"
    options = (STRICT, "-DZETA_TWO_FROM_SOURCE=ON", f"-DZETA_TWO_NVCC={nvcc}")
    cmake(zeta, build, *options)
    assert "library: passed: 1 kernels" in call(build / "zeta_two_selftest", cwd=build)
    cubin = (build / "zeta_two_d64_dense_small_bf16.cubin").read_bytes()
    main = tmp_path / "main.c"
    main.write_text(
        '#include "zeta_two.h"\n#include <stdio.h>\n'
        "int main(void) {\n  char hash[65];\n"
        "  int status = zeta_two_kernel_sha256(zeta_two_d64_dense_small_bf16_kernel(), hash);\n"
        "  puts(hash);\n  return status;\n}\n"
    )
    library = build / "libzeta_two.a"
    command = (need("cc"), f"-I{zeta / 'include'}", main, library, "-ldl", "-o", "hash")
    call(*command, cwd=tmp_path)
    assert call("./hash", cwd=tmp_path).strip() == hashlib.sha256(cubin).hexdigest()
    # and only what changed is compiled again
    os.utime(build / "zeta_two_d64_dense_small_bf16.cubin")
    assert "Embedding" in call("cmake", "--build", build, cwd=build)


def test_a_source_that_changed_after_its_machine_code_is_reported(
    zeta: Path, tmp_path: Path
) -> None:
    """Also in a build that was configured before the edit."""
    folder = Path(shutil.copytree(zeta, tmp_path / "zeta"))
    build = tmp_path / "build"
    options = ("-DZETA_TWO_BUILD_TESTS=OFF",)
    assert "has changed" not in cmake(folder, build, *options)
    source = folder / "kernels/zeta_two_d64_dense_small_bf16.cu"
    source.write_text(source.read_text() + "// mine\n")
    said = " ".join(call("cmake", "--build", build, cwd=build).split())
    assert "kernels/zeta_two_d64_dense_small_bf16.cu has changed since cubins/" in said
    assert "fa4gen vendor recompile" in said


def test_from_source_without_nvcc_says_what_is_missing(zeta: Path, tmp_path: Path) -> None:
    places = [*os.environ["PATH"].split(os.pathsep), "/usr/local/cuda/bin"]
    ignored = ";".join(place for place in places if (Path(place) / "nvcc").exists())
    options = ("-DZETA_TWO_FROM_SOURCE=ON", f"-DCMAKE_IGNORE_PATH={ignored}")
    words = (need("cmake"), "-S", zeta, "-B", tmp_path / "build", *options)
    where = {"CUDA_HOME": "", "CUDA_PATH": ""}
    said = " ".join(call(*words, cwd=tmp_path, status=1, **where).split())
    assert "ZETA_TWO_FROM_SOURCE needs nvcc, which is not found" in said
    assert "Without ZETA_TWO_FROM_SOURCE no toolkit is needed" in said


def test_every_file_says_its_licence(vendored: Path) -> None:
    silent = {
        path.relative_to(vendored).as_posix()
        for path in vendored.rglob("*")
        if path.is_file() and b"SPDX-License-Identifier: Apache-2.0" not in path.read_bytes()
    }
    kernels = {f"kernels/acme_{name}.json" for name in KERNELS}  # JSON has no comments
    assert silent - kernels == {"LICENSE", "fa4gen.lock"}
    assert sources(vendored)
