"""Attention kernels of cuDNN's front end in the emulator, from a checkout that the user names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.compat import cudnn
from tests.compat.judging import judge_runs
from tests.compat.references import attention

pytestmark = [pytest.mark.compat, pytest.mark.compile]

KNOWN = {
    "sm90": {"illegal-instruction", "missing-init-fence"},
    "sm100": {
        "illegal-instruction",
        "missing-init-fence",
        "missing-tcgen05-fence",
        "missing-tcgen05-wait",
        "partial-warp",
        "race",
        "tensor-map",
        "tensor-memory",
    },
}
DEFECTS = {"sm90": set[str](), "sm100": {"barrier-misuse", "race"}}


def _random(rng: np.random.Generator, *shape: int) -> NDArray[Any]:
    return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("arch", "depth", "heads", "key_heads", "rows"),
    [("sm90", 128, 1, 1, 256), ("sm90", 64, 2, 1, 256), ("sm100", 128, 1, 1, 256),
     ("sm100", 64, 2, 1, 384)],
)  # fmt: skip
def test_forward(arch: str, depth: int, heads: int, key_heads: int, rows: int) -> None:
    folder = cudnn.checkout()
    if folder is None:
        pytest.skip(f"{cudnn.VARIABLE} names no checkout of NVIDIA/cudnn-frontend")
    rng = np.random.default_rng(1)
    given = cudnn.Tensors(
        _random(rng, 1, heads, rows, depth),
        _random(rng, 1, key_heads, rows, depth),
        _random(rng, 1, key_heads, rows, depth),
        np.full((1, heads, rows, depth), np.nan, ml_dtypes.bfloat16),
        np.full((1, heads, rows), np.nan, np.float32),
        np.full((1, heads, rows), np.nan, np.float32),
    )
    wide = (np.swapaxes(one.astype(np.float64), 1, 2) for one in (given.q, given.k, given.v))
    out, lse = attention(*wide, "causal")

    def run(schedule: str) -> Any:
        fresh = replace(given, out=given.out.copy(), top=given.top.copy(), total=given.total.copy())
        report = cudnn.launch(folder, arch, fresh, seed=0, schedule=schedule)
        found = {"out": np.swapaxes(fresh.out, 1, 2), "lse": fresh.top + np.log(fresh.total)}
        return found, [report]

    judge_runs(
        run,
        {"out": out, "lse": lse},
        bounds={"out": 2**-8, "lse": 1e-5},
        known=KNOWN[arch],
        defects=DEFECTS[arch],
    )
