"""Matrix products of CUTLASS's collective builders, from a checkout that the user names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.compat.judging import judge_runs
from tests.compat.recordings import load_folder

pytestmark = [pytest.mark.compat, pytest.mark.compile]

VARIABLE = "FA4GEN_CUTLASS"
_SOURCE = Path(__file__).parent / "cutlass" / "gemm.cu"


@dataclass(frozen=True)
class Case:
    """Macros of ``cutlass/gemm.cu``, the problem's size, and what is known about the kernel."""

    arch: str
    tile: tuple[int, int]
    schedule: str
    epilogue: str
    problem: tuple[int, int, int]
    known: tuple[str, ...]
    defects: tuple[str, ...] = ()

    def macros(self) -> list[str]:
        """Arguments of the compiler."""
        return [
            f"-DARCH=Sm{self.arch.removeprefix('sm_').removesuffix('a')}",
            f"-DTILE_M={self.tile[0]}",
            f"-DTILE_N={self.tile[1]}",
            f"-DSCHEDULE={self.schedule}",
            f"-DEPILOGUE={self.epilogue}",
        ]


CASES = {
    "hopper-cooperative": Case(
        "sm_90a", (128, 128),
        "KernelTmaWarpSpecializedCooperative", "TmaWarpSpecializedCooperative", (256, 256, 512),
        ("illegal-instruction",),
    ),
    "hopper-pingpong": Case(
        "sm_90a", (64, 128),
        "KernelTmaWarpSpecializedPingpong", "TmaWarpSpecialized", (256, 256, 512),
        ("illegal-instruction",),
    ),
    "blackwell": Case(
        "sm_100a", (128, 128),
        "KernelTmaWarpSpecialized1SmSm100", "TmaWarpSpecialized1Sm", (512, 256, 512),
        ("illegal-instruction", "missing-tcgen05-fence", "race"),
    ),
    "blackwell-pairs": Case(
        "sm_100a", (256, 128),
        "KernelTmaWarpSpecialized2SmSm100", "TmaWarpSpecialized2Sm", (512, 256, 512),
        ("illegal-instruction", "missing-tcgen05-fence", "race"),
        ("race",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_product(case: Case, tmp_path: Path) -> None:
    checkout = Path(os.environ.get(VARIABLE, ""))
    if not (checkout / "include/cutlass/version.h").is_file():
        pytest.skip(f"{VARIABLE} names no checkout of NVIDIA/cutlass")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc is there to compile CUTLASS")
    capability = case.arch.removeprefix("sm_")
    run(
        nvcc, "-std=c++17", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-cudart", "shared",
        f"-gencode=arch=compute_{capability},code=compute_{capability}",
        *(f"-I{checkout / part}" for part in ("include", "tools/util/include")),
        *case.macros(), _SOURCE, "-o", tmp_path / "product",
    )  # fmt: skip
    run(
        sys.executable, "-m", "fa4gen.cli.main", "record", tmp_path / "out", "--no-execute",
        "--arch", case.arch, "--", tmp_path / "product", *map(str, case.problem),
        tmp_path / "addresses",
    )  # fmt: skip
    [folder] = (tmp_path / "out").iterdir()
    recording = load_folder(folder)
    m, n, k = case.problem
    sizes = {"a": (m, k), "b": (n, k), "c": (m, n), "d": (m, n)}
    addresses = map(int, (tmp_path / "addresses").read_text().split())
    placed = {one.address: name for name, one in recording.arrays.items()}
    names = {name: placed[address] for name, address in zip(sizes, addresses, strict=True)}

    def values(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
        rows, columns = sizes[name]
        bits = arrays[names[name]].view(ml_dtypes.bfloat16)
        return bits[: rows * columns].reshape(rows, columns)

    given = {name: one.array for name, one in recording.arrays.items()}
    a, b, c = (values(name, given).astype(np.float64) for name in "abc")
    assert min(one.std() for one in (a, b, c)) > 0.1
    assert np.isnan(values("d", given).astype(np.float64)).all()

    def once(schedule: str):
        arrays, reports = recording.run(seed=0, schedule=schedule)
        return {"d": values("d", arrays)}, reports

    judge_runs(
        once,
        {"d": a @ b.T + c / 2},
        bounds={"d": 2**-8},
        known=case.known,
        defects=case.defects,
    )


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
