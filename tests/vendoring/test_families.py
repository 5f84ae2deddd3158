"""A folder of one family: nothing of the other family's C is there."""

from __future__ import annotations

import subprocess

import pytest

from fa4gen.config.find import find_configs
from fa4gen.render.text_check import first_breach
from fa4gen.vendoring.binding import Binding
from fa4gen.vendoring.folder_files import folder_files
from fa4gen.vendoring.host_build import build_library, find_c_compiler
from fa4gen.vendoring.kernels import build_kernels
from fa4gen.vendoring.model import Request

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")


@pytest.mark.parametrize(
    ("config", "present", "absent"),
    [
        ("gemm_bf16_short_sm90", "gemm", "attention"),
        ("d64_dense_small_bf16", "attention", "gemm"),
    ],
)
def test_a_folder_of_one_family(config, present, absent, tmp_path) -> None:
    paths = find_configs((config,))
    files = folder_files(Request("one"), build_kernels(paths, "one"))
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.suffix in (".c", ".h"):
            assert first_breach(text) is None, name
    assert f"plan_{present}(" in files["src/one_internal.h"]
    for name in ("src/launcher.c", "src/one_internal.h", "test/selftest.c"):
        assert f"{absent}_" not in files[name], name
    sources = sorted((tmp_path / "src").glob("*.c"))
    for source in sources:
        subprocess.run(
            [*find_c_compiler(), *STRICT, f"-I{tmp_path}/include", "-fsyntax-only", str(source)],
            check=True,
        )
    library = Binding(build_library(tmp_path, tmp_path / "libone.so", flags=("-O0",)), "one")
    assert hasattr(library, present)
    assert not hasattr(library, absent)
    assert f"{absent}_args" not in files["include/one.h"]
