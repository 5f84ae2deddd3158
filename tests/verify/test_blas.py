from __future__ import annotations

import os
import subprocess
import sys

from fa4gen.verify.blas import VARIABLES, use_one_blas_thread


def test_one_thread_unless_the_user_has_said_otherwise(monkeypatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    use_one_blas_thread()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert os.environ["MKL_NUM_THREADS"] == "7"
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    monkeypatch.delenv("OMP_NUM_THREADS")


def test_the_command_can_say_so_before_numpy_is_there() -> None:
    code = (
        "import sys, fa4gen.cli.main, fa4gen.cli.verify, fa4gen.verify.blas; "
        "sys.exit('numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
