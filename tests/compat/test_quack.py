"""QuACK's matrix products, as its own host code launches them, in the emulator."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.compat.judging import CuteRecorder, judge

pytestmark = pytest.mark.compat


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(
    ("arch", "tile", "cluster"),
    [
        ("sm_90a", (128, 128), (2, 1)),
        ("sm_90a", (128, 192), (1, 2)),
        ("sm_100a", (128, 128), (1, 1)),
        ("sm_100a", (256, 256), (2, 1)),
    ],
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else value,
)
def test_product(
    cute: CuteRecorder, arch: str, tile: tuple[int, int], cluster: tuple[int, int], dtype: str
) -> None:
    # sizes that are not multiples of the tile, and more steps of k than the ring has stages
    recording = cute(
        what="gemm", arch=arch, m=328, n=264, k=712, tile=tile, cluster=cluster, dtype=dtype
    )
    a, b = recording.values("a"), recording.values("b")
    judge(
        recording,
        {"d": a @ np.swapaxes(b, 1, 2)},
        bounds={"d": 2**-8 if dtype == "bfloat16" else 2**-11},
        known={"illegal-instruction", "missing-tcgen05-fence"},
    )


def numbers(elements: NDArray[Any], atoms: NDArray[Any], form: str) -> NDArray[np.float64]:
    """Return elements [rows, k], which are bits, times the scales of their blocks."""
    across, along = atoms.shape[:2]
    plain = atoms.transpose(0, 3, 2, 1, 4).reshape(across * 128, along * 4)
    if form == "nvfp4":
        pairs = np.stack([elements & 15, elements >> 4], -1).reshape(len(elements), -1)
        exact = pairs.view(ml_dtypes.float4_e2m1fn).astype(np.float64)
        scales = plain.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    else:
        exact = elements.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        scales = plain.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    rows, k = exact.shape
    return exact * np.repeat(scales, 16 if form == "nvfp4" else 32, 1)[:rows, :k]


@pytest.mark.parametrize("form", ["mxfp8", "nvfp4"])
@pytest.mark.parametrize(
    ("tile", "cluster"), [((128, 128), (1, 1)), ((256, 128), (2, 1))], ids=["one", "pair"]
)
def test_scaled_product(
    cute: CuteRecorder, tile: tuple[int, int], cluster: tuple[int, int], form: str
) -> None:
    recording = cute(
        what="scaled", arch="sm_100a", m=328, n=264, k=736, tile=tile, cluster=cluster, form=form
    )
    left, right = (
        numbers(recording.arrays[name].array[0], recording.arrays[f"scale_{name}"].array[0], form)
        for name in ("a", "b")
    )
    judge(
        recording,
        {"d": (left @ right.T)[None]},
        bounds={"d": 2**-8},
        known={"illegal-instruction", "missing-tcgen05-fence", "race"},
    )
