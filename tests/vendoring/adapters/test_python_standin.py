"""The adapter for Python down to the driver, whose place the stand-in takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fa4gen.vendoring.standin
from fa4gen.errors import MissingCapabilityError
from fa4gen.vendoring.host_build import compile_c, find_c_compiler

HERE = Path(__file__).parent
STANDIN = Path(fa4gen.vendoring.standin.__file__).parent
FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-shared", "-pthread", "-Wl,-soname,libcuda.so.1")


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in needs Linux")
def test_over_the_stand_in(tmp_path: Path) -> None:
    """The tests of standin_calls.py, in a process of its own that knows no other driver."""
    driver = tmp_path / "libcuda.so.1"
    sources = [*sorted(STANDIN.glob("*.c")), HERE / "driver_more.c"]
    try:
        compile_c(find_c_compiler(), [*FLAGS, f"-I{STANDIN}"], sources, driver)
    except MissingCapabilityError as error:
        pytest.skip(str(error))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, HERE / "standin_calls.py"],
        env={**os.environ, "ACME_DRIVER": str(driver), "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
