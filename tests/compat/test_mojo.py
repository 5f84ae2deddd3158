"""MAX's matrix product and attention, launched by Mojo programs, in the emulator."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from fa4gen.emulator import SCHEDULES
from tests.compat.judging import judge_runs
from tests.compat.recordings import Recording, load_folder
from tests.compat.references import attention

pytestmark = pytest.mark.compat

_HERE = Path(__file__).parent / "mojo"
_DEPTH = 128
_DEVICES = {"sm_90a": "HOPPER", "sm_100a": "BLACKWELL"}


@dataclass(frozen=True)
class Tensors:
    """The arrays of a recording that a program calls by name, of known shapes, as bfloat16."""

    names: dict[str, str]
    shapes: dict[str, tuple[int, ...]]

    def value(self, name: str, arrays: dict[str, NDArray[Any]]) -> NDArray[Any]:
        shape = self.shapes[name]
        bits = arrays[self.names[name]].view(ml_dtypes.bfloat16)
        return bits[: np.prod(shape)].reshape(shape)

    def given(self, recording: Recording, names: str) -> list[NDArray[np.float64]]:
        """Return the arrays that the program filled; AssertionError unless they are random."""
        arrays = {name: one.array for name, one in recording.arrays.items()}
        found = [self.value(name, arrays).astype(np.float64) for name in names]
        assert min(one.std() for one in found) > 0.1
        return found


def build(folder: Path, source: str, arch: str, *defines: str) -> Path:
    """The program of ``source`` below ``folder``, next to its replacement of libnvidia-ml.so."""
    mojo = Path(sys.executable).with_name("mojo")
    if importlib.util.find_spec("mojo") is None or not mojo.exists():
        pytest.skip("no package has mojo: pip install -e '.[compat]'")
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler to build a stand-in for libnvidia-ml.so")
    program = folder / "program"
    options = [option for define in defines for option in ("-D", define)]
    run(mojo, "build", "--target-accelerator", arch, *options, _HERE / source, "-o", program)
    flags = ["-shared", "-fPIC", f"-D{_DEVICES[arch]}"]
    run(compiler, *flags, _HERE / "nvml.c", "-o", folder / "libnvidia-ml.so.1")
    return program


def record(program: Path, arch: str, *arguments: int) -> tuple[Recording, list[int]]:
    """The one launch of a program, and the numbers in the last line that it prints."""
    out = program.with_name("out")
    done = subprocess.run(
        [sys.executable, "-m", "fa4gen.cli.main", "record", out, "--no-execute", "--arch", arch,
         "--format", "json", "--", program, *map(str, arguments)],
        env=os.environ | {"LD_LIBRARY_PATH": str(program.parent)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    [folder] = out.iterdir()
    recording = load_folder(folder)
    shutil.rmtree(out)  # MAX keeps a pool of more than a gigabyte
    lines = [line.split() for line in done.stderr.splitlines()]  # stdout is the table's
    numbers = [line for line in lines if line and all(word.isdigit() for word in line)]
    return recording, [int(word) for word in numbers[-1]]


def place(recording: Recording, addresses: Sequence[int], **shapes: tuple[int, ...]) -> Tensors:
    """The arrays at ``addresses``, with the names and shapes of ``shapes``, in order."""
    placed = {one.address: name for name, one in recording.arrays.items()}
    names = {name: placed[address] for name, address in zip(shapes, addresses, strict=True)}
    return Tensors(names, shapes)


def test_product(tmp_path: Path) -> None:
    m, n, k = 256, 256, 512
    program = build(tmp_path, "gemm.mojo", "sm_100a")
    recording, addresses = record(program, "sm_100a")
    tensors = place(recording, addresses, a=(m, k), b=(n, k), c=(m, n))
    a, b = tensors.given(recording, "ab")

    def once(schedule: str):
        arrays, reports = recording.run(seed=0, schedule=schedule)
        return {"c": tensors.value("c", arrays)}, reports

    judge_runs(
        once,
        {"c": a @ b.T},
        bounds={"c": 2**-8},
        known={"missing-tcgen05-fence", "tensor-memory"},
    )


@dataclass(frozen=True)
class Problem:
    """Rows, keys, the parts that the keys are split into (0: MAX chooses), and what is known."""

    sizes: tuple[int, int, int]
    cluster: int
    defects: tuple[str, ...] = ()
    right_under: tuple[str, ...] = tuple(SCHEDULES)


_BLACKWELL = {
    "early-exit",
    "missing-init-fence",
    "missing-tcgen05-fence",
    "missing-tcgen05-wait",
    "partial-warp",
    "race",
    "tensor-memory",
}
KERNELS = {
    "sm_90a": ("sm_90a", (), {"missing-init-fence"}, [
        Problem((256, 384, 0), 1, ("over-arrival", "phase-lap")),
        Problem((200, 300, 0), 1, ("over-arrival", "phase-lap")),
    ]),
    # two CTAs share the keys, or each tile has one
    "sm_100a-1q": ("sm_100a", (), _BLACKWELL | {"barrier-misuse"}, [
        Problem((256, 384, 0), 2, ("race",)), Problem((200, 300, 1), 1),
    ]),
    # what MAX uses where the tiles fill the device; correct with one block of keys
    "sm_100a-2q": ("sm_100a", ("FA4_FORCE_2Q=1",), _BLACKWELL, [
        Problem((128, 128, 0), 1), Problem((200, 300, 0), 1, ("phase-lap", "race"), ("eager",)),
    ]),
}  # fmt: skip


@pytest.mark.parametrize(("arch", "defines", "known", "problems"), KERNELS.values(), ids=KERNELS)
def test_attention(
    arch: str, defines: tuple[str, ...], known: set[str], problems: list[Problem], tmp_path: Path
) -> None:
    program = build(tmp_path, "attention.mojo", arch, *defines)
    for problem in problems:
        check_attention(program, arch, known, problem)


def check_attention(program: Path, arch: str, known: set[str], problem: Problem) -> None:
    rows, keys, _ = problem.sizes
    recording, addresses = record(program, arch, *problem.sizes)
    assert recording.launches[0].cluster in (None, (problem.cluster, 1, 1))
    of_q, of_k = (1, rows, 2, _DEPTH), (1, keys, 1, _DEPTH)
    tensors = place(recording, addresses, q=of_q, k=of_k, v=of_k, o=of_q)
    right, _ = attention(*tensors.given(recording, "qkv"), mask="causal")

    def once(schedule: str):
        arrays, reports = recording.run(seed=0, schedule=schedule)
        return {"o": tensors.value("o", arrays)}, reports

    errors = judge_runs(
        once,
        {"o": right},
        bounds={"o": 2**-8},
        known=known,
        defects=problem.defects,
        right_under=problem.right_under,
    )
    assert errors == set(problem.defects)


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
