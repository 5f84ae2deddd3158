"""A folder with a merging kernel: its texts compile, its README's call works, its adapters."""

from __future__ import annotations

import ctypes
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from fa4gen.config.find import find_configs
from fa4gen.config.load import load_mapping
from fa4gen.render.environment import open_templates
from fa4gen.vendoring.assemble import text_files
from fa4gen.vendoring.binding import MergeArgs
from fa4gen.vendoring.kernels import load_configs, render_kernels
from fa4gen.vendoring.model import Request
from tests.vendoring.stranger.tools import LIBRARIES, WARNINGS, need

if TYPE_CHECKING:
    from pathlib import Path

MERGE, ATTENTION = "merge_d128_bf16", "d128_causal_bf16"
ADAPTERS = ("python", "torch", "jax", "tvm-ffi", "hf-kernels")
DIALECTS = (
    ("gcc", "-std=c11"),
    ("clang", "-std=c11"),
    ("g++", "-x", "c++", "-std=c++17"),
    ("clang++", "-x", "c++", "-std=c++17"),
)


def texts(*configs: str, adapters: tuple[str, ...] = ()) -> dict[str, str]:
    """The files of a folder whose kernels are not compiled."""
    templates = open_templates()
    planned = render_kernels(load_configs(find_configs(configs)), "acme", templates)
    files = text_files(Request("acme", adapters), planned, templates)
    return {path: data.decode() for path, data in files.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("merging") / "acme"
    for path, text in texts(MERGE, ATTENTION).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", DIALECTS, ids=lambda command: command[0])
def test_it_compiles_without_a_warning(folder: Path, command: tuple[str, ...]) -> None:
    sources = [folder / "src/launcher.c", folder / "test/selftest.c"]
    made = subprocess.run(
        [need(command[0]), *command[1:], *WARNINGS, "-Wshadow", "-fsyntax-only", *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, made.stderr) == (0, "")


@pytest.mark.parametrize(("compiler", "language"), [("gcc", "-std=c11"), ("g++", "-xc++")])
def test_the_call_of_the_readme_works(
    folder: Path, tmp_path: Path, compiler: str, language: str
) -> None:
    blocks = re.findall(r"^```c\n(.*?)^```$", (folder / "README.md").read_text(), re.M | re.S)
    (merge,) = (block for block in blocks if "acme_merge_d128_bf16(&args" in block)
    main = """\
const acme_image acme_merge_d128_bf16_image, acme_d128_causal_bf16_image;
int main(void) {
  int status = merge(NULL, NULL, NULL, NULL, -1, 1, 1, 1, NULL);
  return status == ACME_BAD_EXTENT + 256 * ACME_ARG_PARTS ? 0 : 1;
}
"""
    if compiler == "g++":
        main = main.replace(
            "const acme_image acme_merge_d128_bf16_image, acme_d128_causal_bf16_image;",
            "const acme_image acme_merge_d128_bf16_image = {}, acme_d128_causal_bf16_image = {};",
        )
    program = tmp_path / "calls.c"
    program.write_text(f'#include "{folder}/src/acme_internal.h"\n{merge}{main}')
    subprocess.run(
        [need(compiler), language, f"-I{folder / 'include'}", program, folder / "src/launcher.c",
         *LIBRARIES, "-o", tmp_path / "calls"],
        check=True,
    )  # fmt: skip
    subprocess.run([tmp_path / "calls"], check=True)


def test_the_struct_has_the_header_s_size(folder: Path) -> None:
    """The self-test fixes it in C."""
    fixed = (folder / "test/selftest.c").read_text()
    assert f"sizeof(acme_merge_args), {ctypes.sizeof(MergeArgs)})" in fixed
    assert f"acme_merge_args, part_lse), {MergeArgs.part_lse.offset})" in fixed


def test_other_folders_have_nothing_of_it() -> None:
    """Their texts and the size of what is prepared are as before there were merging kernels."""
    for path, text in texts(ATTENTION, adapters=ADAPTERS).items():
        assert not re.search(r"acme_merge|ACME_MERGE|PART_LSE|MAX_AXES 5|[mM]erge", text), path


@pytest.mark.parametrize("names", [(MERGE,), (ATTENTION, MERGE)])
def test_adapters_have_a_function_for_it(names: tuple[str, ...]) -> None:
    files = texts(*names, adapters=ADAPTERS)
    for path in ("python/acme.py", "torch/acme_torch.py", "jax/acme_jax.py"):
        assert f"\ndef {MERGE}(\n    parts: " in files[f"adapters/{path}"], path
    for path in ("torch/acme_torch.cpp", "jax/acme_jax.cc", "tvm_ffi/acme_tvm_ffi.cc"):
        assert f"const Merge kernel_{MERGE} = {{\n" in files[f"adapters/{path}"], path
    assert f'"{MERGE}",\n' in files["adapters/hf_kernels/__init__.py"]


def test_its_examples_merge() -> None:
    files = texts(MERGE, adapters=ADAPTERS)
    for path in ("python", "torch", "jax", "tvm_ffi"):
        assert f".{MERGE}(parts, part_lse" in files[f"adapters/{path}/example.py"], path


def test_the_log_sum_exp_may_be_left_out() -> None:
    templates = open_templates()
    keys = {"kernel": "merge", "arch": "sm_90a", "dtype": "fp16", "depth": 64, "lse": False}
    planned = render_kernels([load_mapping(keys, "without")], "acme", templates)
    files = text_files(Request("acme", ADAPTERS), planned, templates)
    python = files["adapters/torch/acme_torch.py"].decode()
    assert "    lse: torch.Tensor | None" not in python
    assert 'return _merge("without", parts, part_lse, out, None)' in python
    assert b"out, View()" not in files["adapters/torch/acme_torch.cpp"]
    assert b"view(out), View()" in files["adapters/torch/acme_torch.cpp"]
