"""Kernels of two vendored folders as parts of one translation unit of a program's own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fa4gen.toolchain.compile import find_compiler
from fa4gen.toolchain.model import Unit

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.compile
def test_two_prefixes_in_one_translation_unit(pristine: Path, zeta: Path) -> None:
    names = ("acme_d64_dense_small_bf16", "acme_gemm_bf16_residual_sm90")
    sources = [pristine / "kernels" / f"{name}.cu" for name in names]
    sources.append(zeta / "kernels" / "zeta_two_d64_dense_small_bf16.cu")
    headers = {source.name: source.read_text() for source in sources}
    for source in sources:
        for end in ("_barriers.h", "_device.cuh"):
            header = source.with_name(source.stem + end)
            headers[header.name] = header.read_text()
    text = "".join(f'#include "{source.name}"\n' for source in sources)
    ptx = find_compiler("auto").build_ptx(Unit("both", text, headers, "sm_90a"))
    entries = re.findall(r"\.entry (\w+)", ptx)
    assert sorted(entries) == sorted(f"{source.stem}_entry" for source in sources)
