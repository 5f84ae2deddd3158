"""The adapter for Python down to the driver, whose place the stand-in takes."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen.vendoring.standin
from fa4gen.errors import MissingCapabilityError
from fa4gen.vendoring.host_build import build_library, compile_c, find_c_compiler
from tests.vendoring.adapters.folders import KERNELS, write_folder

HERE = Path(__file__).parent
PROGRAM = HERE / "standin_calls.py"
STANDIN = Path(fa4gen.vendoring.standin.__file__).parent
FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread", "-Wl,-soname,libcuda.so.1")


def cases() -> list[str]:
    (owner,) = [
        node
        for node in ast.parse(PROGRAM.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == "Cases"
    ]
    functions = [node.name for node in owner.body if isinstance(node, ast.FunctionDef)]
    return [name for name in functions if not name.startswith("_")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[str, str]:
    """The traceback of each case, empty where it holds."""
    names = (*KERNELS, "d128_ragged_causal_bf16", "d64_paged64_window_sinks_bf16")
    names = (*names, "decode_d128_bf16", "decode_d128_splits_bf16", "d128_alibi_causal_bf16")
    names = (*names, "decode_d128_paged64_kv_fp8_page_bf16")
    folder = write_folder(tmp_path_factory.mktemp("python"), names, ("python",))
    driver = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    sources = [*sorted(STANDIN.glob("*.c")), HERE / "driver_more.c"]
    try:
        compile_c(find_c_compiler(), [*FLAGS, f"-I{STANDIN}"], sources, driver)
        build_library(folder, folder / "libacme.so")
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), str(driver), str(folder), str(HERE.parent.parent)],
        env={
            **os.environ,
            "ACME_LIBRARY": str(folder / "libacme.so"),
            "LD_LIBRARY_PATH": str(driver.parent),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, str] = json.loads(ran.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in needs Linux")
@pytest.mark.parametrize("case", cases())
def test_over_the_stand_in(outcomes, case) -> None:
    assert not outcomes[case], outcomes[case]
