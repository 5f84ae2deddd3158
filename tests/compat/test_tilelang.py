"""TileLang's code of kernels written for these tests, in the emulator."""

from __future__ import annotations

import importlib.util
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from fa4gen.emulator import SCHEDULES
from fa4gen.emulator.recorder.driver_maps import encode
from tests.compat.judging import judge
from tests.compat.recordings import Launch, Placed, Recording
from tests.compat.references import attention

pytestmark = pytest.mark.compat

_COMPILE = Path(__file__).parent / "tilelang" / "compile.py"
_FIRST_ADDRESS = 0x20_0000_0000
_SPACING = 1 << 24


def record(folder: Path, arrays: Mapping[str, NDArray[Any]], **case: Any) -> Recording:
    """The launch of a kernel of ``tilelang/kernels.py``, with ``arrays`` by its tensors' names."""
    if importlib.util.find_spec("tilelang") is None:
        pytest.skip("no package has tilelang: pip install -e '.[compat]'")
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("TileLang compiles with nvcc, which is not there")
    output = folder / "launch"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", _COMPILE, json.dumps({"nvcc": nvcc, **case}), output],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{case} was not compiled:\n{done.stdout}{done.stderr}"
    launch = pickle.loads(output.read_bytes())
    placed = {
        name: Placed(_FIRST_ADDRESS + _SPACING * index, array)
        for index, (name, array) in enumerate(arrays.items())
    }
    parameters = [
        tensor_map(placed[one[1]].address, one[2], case["arch"])
        if isinstance(one, tuple)
        else placed[one].address.to_bytes(8, "little")
        for one in launch["parameters"]
    ]
    return Recording(
        [
            Launch(
                launch["entry"],
                launch["ptx"],
                launch["grid"],
                launch["block"],
                None,
                launch["shared"],
                parameters,
            )
        ],
        placed,
    )


def tensor_map(address: int, numbers: list[int], arch: str) -> bytes:
    """The map that the driver makes of what TileLang's host code hands to it."""
    (data_type, rank), lists = numbers[:2], numbers[2:-4]
    dims, strides, box, steps = (lists[rank * part : rank * (part + 1)] for part in range(4))
    interleave, swizzle, l2, fill = numbers[-4:]
    return encode(
        data_type=data_type,
        address=address,
        dims=dims,
        strides=strides[1:],
        box=box,
        steps=steps,
        interleave=interleave,
        swizzle=swizzle,
        l2=l2,
        fill=fill,
        sm=int(arch[3:-1]),
    )


def random(*shape: int, seed: int) -> NDArray[Any]:
    return np.random.default_rng(seed).normal(size=shape).astype(ml_dtypes.bfloat16)


# What docs/measurements/emulator-findings.md lists: below errors, and errors with and without
# roles for warps.
# Tensor memory is freed early, by a warp that waits for nobody: with roles there is nothing left to
# work on, without there is where no warp is slow. Copying warps that are slow wait for ever.
KNOWN = {
    "sm_90a": {"missing-proxy-fence"},
    "sm_100a": {"missing-proxy-fence", "missing-tcgen05-fence", "tensor-memory"},
}
# the schedules under which outputs are right
RIGHT = {
    ("product", False): SCHEDULES,
    ("product", True): SCHEDULES,
    ("tensor_product", False): tuple(one for one in SCHEDULES if one != "starve_warp"),
    ("tensor_product", True): (),
}


@pytest.mark.parametrize(
    ("kernel", "arch", "tile", "roles", "defects"),
    [
        ("product", "sm_90a", (128, 128, 64), False, ()),
        ("product", "sm_90a", (64, 128, 32), True, ("deadlock", "phase-lap")),
        ("product", "sm_100a", (128, 128, 64), False, ()),
        ("product", "sm_100a", (128, 128, 64), True, ("deadlock", "phase-lap", "proxy-war")),
        ("tensor_product", "sm_100a", (128, 128, 64), False, ("tensor-memory",)),
        ("tensor_product", "sm_100a", (128, 128, 64), True, ("phase-lap", "tensor-memory")),
        ("tensor_product", "sm_100a", (64, 128, 32), False, ("tensor-memory",)),
    ],
)
def test_product(
    kernel: str,
    arch: str,
    tile: tuple[int, int, int],
    roles: bool,
    defects: tuple[str, ...],
    tmp_path: Path,
) -> None:
    # rows that are not a multiple of the tile, and more steps of k than the ring has stages
    m, n, k = 200, 256, 256
    a, b = random(m, k, seed=1), random(n, k, seed=2)
    recording = record(
        tmp_path,
        {"A": a, "B": b, "C": np.full((m, n), np.nan, ml_dtypes.bfloat16)},
        kernel=kernel, arch=arch, roles=roles, m=m, n=n, k=k, tile=tile, stages=2,
    )  # fmt: skip
    errors = judge(
        recording,
        {"C": a.astype(np.float64) @ b.astype(np.float64).T},
        bounds={"C": 2**-8},
        known=KNOWN[arch],
        defects=defects,
        right_under=RIGHT[kernel, roles],
    )
    assert errors == set(defects)


@pytest.mark.parametrize(
    ("arch", "roles", "defects"),
    [
        ("sm_90a", False, ()),
        ("sm_90a", True, ("deadlock", "phase-lap")),
        ("sm_100a", False, ()),
        ("sm_100a", True, ("deadlock", "phase-lap", "proxy-war")),
    ],
)
def test_attention(arch: str, roles: bool, defects: tuple[str, ...], tmp_path: Path) -> None:
    rows, keys, depth = 128, 192, 64
    q, k, v = (
        random(size, 2, depth, seed=size + one) for one, size in enumerate((rows, keys, keys))
    )
    recording = record(
        tmp_path,
        {
            "Q": q,
            "K": k,
            "V": v,
            "OUT": np.full((rows, 2, depth), np.nan, ml_dtypes.bfloat16),
            "SUMS": np.full((2, rows), np.nan, np.float32),
        },
        kernel="attention", arch=arch, roles=roles,
        rows=rows, keys=keys, depth=depth, tile=(64, 64), stages=2,
    )  # fmt: skip
    right, sums = attention(*(one.astype(np.float64)[None] for one in (q, k, v)), mask="none")
    errors = judge(
        recording,
        {"OUT": right[0], "SUMS": sums[0]},
        bounds={"OUT": 2**-8, "SUMS": 1e-5},
        known=KNOWN[arch],
        defects=defects,
    )
    assert errors == set(defects)


def test_scaled_product(tmp_path: Path) -> None:
    m, n, k = 256, 128, 768
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=(rows, k)).astype(ml_dtypes.float8_e4m3fn) for rows in (m, n))
    scales = [rng.integers(120, 130, (k // 128, rows, 4), np.uint8) for rows in (m, n)]
    recording = record(
        tmp_path,
        {
            "A": a,
            "B": b,
            "SCALE_A": scales[0].view(np.uint32).reshape(-1),
            "SCALE_B": scales[1].view(np.uint32).reshape(-1),
            "C": np.full((m, n), np.nan, ml_dtypes.bfloat16),
        },
        kernel="scaled_product", arch="sm_100a", roles=False,
        m=m, n=n, k=k, tile=(128, 128), stages=2,
    )  # fmt: skip
    left, right = (
        x.astype(np.float64) * np.repeat(2.0 ** (plain - 127), 32, 1)
        for x, plain in (
            (x, codes.transpose(1, 0, 2).reshape(len(x), -1).astype(np.float64))
            for x, codes in zip((a, b), scales, strict=True)
        )
    )
    judge(
        recording,
        {"C": left @ right.T},
        bounds={"C": 2**-8},
        known=KNOWN["sm_100a"] | {"race"},
        defects=("tensor-memory",),
        right_under=RIGHT["tensor_product", False],
    )
