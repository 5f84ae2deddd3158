"""MAX's matrix product for Blackwell, launched by a Mojo program, in the emulator."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.compat.judging import judge_runs
from tests.compat.recordings import load_folder

pytestmark = pytest.mark.compat

_HERE = Path(__file__).parent / "mojo"
_M = _N = 256
_K = 512
_SIZES = {"a": (_M, _K), "b": (_N, _K), "c": (_M, _N)}


def test_product(tmp_path: Path) -> None:
    mojo = Path(sys.executable).with_name("mojo")
    if importlib.util.find_spec("mojo") is None or not mojo.exists():
        pytest.skip("no package has mojo: pip install -e '.[compat]'")
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler is there to build a stand-in for libnvidia-ml.so")
    run(mojo, "build", "--target-accelerator", "sm_100a", _HERE / "gemm.mojo", "-o", tmp_path / "p")
    run(compiler, "-shared", "-fPIC", _HERE / "nvml.c", "-o", tmp_path / "libnvidia-ml.so.1")
    record = [sys.executable, "-m", "fa4gen.cli.main", "record", "out", "--no-execute"]
    subprocess.run(
        [*record, "--arch", "sm_100a", "--", tmp_path / "p"],
        cwd=tmp_path,
        env=os.environ | {"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        check=False,  # MAX ends with calls that a recording does not have
    )
    [folder] = (tmp_path / "out").iterdir()
    recording = load_folder(folder)
    shutil.rmtree(folder)  # MAX keeps a pool of more than a gigabyte
    # the first parameters are tensor maps of a, b and c, each with its address in front
    first = (int.from_bytes(raw[:8], "little") for raw in recording.launches[0].parameters)
    placed = {one.address: name for name, one in recording.arrays.items()}
    names = {name: placed[address] for name, address in zip(_SIZES, first, strict=False)}

    def values(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
        rows, columns = _SIZES[name]
        return arrays[names[name]].view(ml_dtypes.bfloat16)[: rows * columns].reshape(rows, columns)

    given = {name: one.array for name, one in recording.arrays.items()}
    a, b = (values(name, given).astype(np.float64) for name in "ab")
    assert min(a.std(), b.std()) > 0.1

    def once(schedule: str):
        arrays, reports = recording.run(seed=0, schedule=schedule)
        return {"c": values("c", arrays)}, reports

    judge_runs(
        once,
        {"c": a @ b.T},
        bounds={"c": 2**-8},
        known={"missing-tcgen05-fence", "tensor-memory"},
    )


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
