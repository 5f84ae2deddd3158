"""Kernels of two vendored folders as parts of one translation unit of a program's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit
from tests.vendoring.stranger.tools import CXX17, LIBRARIES, call, need, sources

if TYPE_CHECKING:
    from pathlib import Path


BOTH = """
#include "acme.h"
#include "zeta_two.h"
int main() {
  return acme_load(acme_kernel_at(0)) == 0 && zeta_two_load(zeta_two_kernel_at(0)) == 0;
}
"""


@pytest.mark.compile
def test_two_prefixes_share_no_type(pristine: Path, zeta: Path, tmp_path: Path) -> None:
    """C++ has one definition of each type in a program, which a compiler sees in the linker."""
    compiler = need("g++")
    (tmp_path / "main.cpp").write_text(BOTH)
    flags = [*CXX17, "-O1", "-flto", "-Wodr", "-Werror"]
    folders = [pristine, zeta]
    command = [compiler, *flags, *(f"-I{folder / 'include'}" for folder in folders)]
    files = [tmp_path / "main.cpp", *(path for folder in folders for path in sources(folder))]
    found = call(
        *command, *files, "-o", tmp_path / "program", *LIBRARIES, cwd=tmp_path, status=None
    )
    if "lto" in found and "One Definition Rule" not in found:
        pytest.skip(f"no optimisation at link time here: {found}")
    assert found == ""


@pytest.mark.compile
def test_two_prefixes_in_one_translation_unit(pristine: Path, zeta: Path) -> None:
    names = ("acme_d64_dense_small_bf16", "acme_gemm_bf16_residual_sm90")
    kernels = [pristine / "kernels" / f"{name}.cu" for name in names]
    kernels.append(zeta / "kernels" / "zeta_two_d64_dense_small_bf16.cu")
    headers = {source.name: source.read_text() for source in kernels}
    for source in kernels:
        for end in ("_barriers.h", "_device.cuh"):
            header = source.with_name(source.stem + end)
            headers[header.name] = header.read_text()
    text = "".join(f'#include "{source.name}"\n' for source in kernels)
    ptx = find_compiler("auto").build_ptx(Unit("both", text, headers, "sm_90a"))
    entries = re.findall(r"\.entry (\w+)", ptx)
    assert sorted(entries) == sorted(f"{source.stem}_entry" for source in kernels)
