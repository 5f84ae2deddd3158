"""Attention in Triton, plain and with descriptors, with and without roles for warps."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

products = pytest.importorskip("tests.emulator.triton.kernels_products", reason="needs Triton")
compiling = pytest.importorskip("tests.emulator.triton.compiling", reason="needs Triton")
launch, Descriptor = compiling.launch, compiling.Descriptor

pytestmark = pytest.mark.triton


def reference(query, key, value, scale, causal):
    """Outputs and log-sum-exp of [..., rows, depth] inputs in float64."""
    q, k, v = (x.astype(np.float64) for x in (query, key, value))
    score = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        rows, columns = score.shape[-2:]
        score = np.where(np.arange(columns) <= np.arange(rows)[:, None], score, -np.inf)
    top = score.max(-1, keepdims=True)
    weight = np.exp(score - top)
    below = weight.sum(-1, keepdims=True)
    return weight @ v / below, (top + np.log(below))[..., 0]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("depth", "height", "width", "warps", "dtype"),
    [
        (64, 64, 32, 4, np.float16),
        (32, 128, 64, 8, ml_dtypes.bfloat16),
        (128, 16, 16, 1, np.float16),
    ],
)
def test_attention(arch, rng, depth, height, width, warps, dtype, causal) -> None:
    heads, rows, columns = 2, height + 9, height + 9 if causal else 2 * width + 11
    query = rng.normal(size=(heads, rows, depth)).astype(dtype)
    key, value = (rng.normal(size=(heads, columns, depth)).astype(dtype) for _ in range(2))
    out, lse = np.zeros_like(query), np.zeros((heads, rows), np.float32)
    launch(
        products.attention, arch, (2, heads),
        (query, key, value, out, lse, rows, columns, depth**-0.5),
        warps=warps, CAUSAL=causal, D=depth, HEIGHT=height, WIDTH=width,
    )  # fmt: skip
    exact, sums = reference(query, key, value, depth**-0.5, causal)
    bound = 2e-3 if dtype is np.float16 else 2e-2
    assert np.abs(out.astype(np.float64) - exact).max() < bound
    assert np.abs(lse - sums).max() < 1e-4


@pytest.mark.parametrize("schedule", ["uniform", "starve", "lazy"])
@pytest.mark.parametrize("specialised", [False, True])
@pytest.mark.parametrize("height", [64, 128])
def test_attention_with_descriptors(arch, rng, height, specialised, schedule) -> None:
    if arch == 90 and specialised:
        pytest.skip("Triton 3.6 compiles 128 rows not at all, and stores 64 rows twice")
    depth, width, columns = 64, 64, 3 * 64
    query = rng.normal(size=(2 * height, depth)).astype(np.float16)
    key, value = (rng.normal(size=(columns, depth)).astype(np.float16) for _ in range(2))
    out = np.zeros_like(query)
    known = (*compiling.SCRATCH, *(compiling.ROLES if specialised else ())) if arch == 100 else ()
    boxes = ((query, height), (key, width), (value, width), (out, height))
    launch(
        products.attention_described, arch, 2,
        (*(Descriptor(x, (tall, depth)) for x, tall in boxes), columns, depth**-0.5),
        stages=2, schedule=schedule, known=known,
        SPECIALISED=specialised, D=depth, HEIGHT=height, WIDTH=width,
    )  # fmt: skip
    exact, _ = reference(query, key, value, depth**-0.5, False)
    assert np.abs(out.astype(np.float64) - exact).max() < 2e-3
