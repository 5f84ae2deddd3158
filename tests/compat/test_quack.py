"""QuACK's matrix products, as its own host code launches them, in the emulator."""

from __future__ import annotations

import numpy as np
import pytest

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
