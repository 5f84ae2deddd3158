"""Quantising and arranging on a GPU: the same bits as NumPy's. Products with what comes of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

import fa4gen
from fa4gen.scales import arrange, dequantize, quantize, restore
from fa4gen.scales.forms import FORMS
from tests.scales.test_page import GUIDE

if TYPE_CHECKING:
    from fa4gen.runtime.device import DeviceInfo

SHAPE = (2, 130, 512)


@pytest.mark.gpu
@pytest.mark.parametrize("form", FORMS)
def test_cupy_gives_numpys_bits(gpu: DeviceInfo, form: str) -> None:
    """A reference in NumPy would not prove what a user quantises on the GPU."""
    import cupy

    del gpu
    rng = np.random.default_rng(1)
    x = rng.standard_normal(SHAPE) * np.exp2(rng.integers(-30, 30, SHAPE))
    x = x.astype(np.float32)
    x[0, 3, :40], x[0, 5], x[1, 7, 3], x[1, 8, 2] = 0, 0, np.inf, np.nan
    ours, done = quantize(x, form), quantize(cupy.asarray(x), form)
    assert isinstance(done.elements, cupy.ndarray)
    np.testing.assert_array_equal(done.elements.get(), ours.elements)
    np.testing.assert_array_equal(done.scales.get(), ours.scales)
    assert done.tensor_scale == ours.tensor_scale
    np.testing.assert_array_equal(dequantize(done).get(), dequantize(ours))


@pytest.mark.gpu
def test_cupy_arranges_as_numpy(gpu: DeviceInfo) -> None:
    import cupy

    del gpu
    scales = np.random.default_rng(1).integers(0, 256, (2, 300, 9), dtype=np.uint8)
    arranged = arrange(cupy.asarray(scales))
    np.testing.assert_array_equal(arranged.get(), arrange(scales))
    np.testing.assert_array_equal(restore(arranged, 300, 9).get(), scales)


@pytest.mark.gpu
def test_torch_code_of_the_page_runs(gpu: DeviceInfo) -> None:
    torch = pytest.importorskip("torch", reason="no PyTorch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    del gpu
    page = (GUIDE / "scaled-products.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(compile(code, "scaled-products.md", "exec"), {})


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["row by row", "column by column"])
def test_a_set_picks_kernels_for_scaled_products(gpu: DeviceInfo, order: str) -> None:
    import cupy

    del gpu
    kernels = fa4gen.load("gemm_fp8_scaled_sm90", shapes="auto")
    rng = np.random.default_rng(2)
    weight = quantize(cupy.asarray(rng.standard_normal((1024, 1040), np.float32)), "128x128")
    exact_weight = dequantize(weight).astype(cupy.float64).T
    for rows in (48, 2000):
        x = quantize(cupy.asarray(rng.standard_normal((rows, 1040), np.float32)), "1x128")
        of_x = x.scales if order == "row by row" else cupy.ascontiguousarray(x.scales.T).T
        out = kernels(x.elements, weight.elements.T, scale_a=of_x, scale_b=weight.scales.T)
        expected = (dequantize(x).astype(cupy.float64) @ exact_weight).get()
        error = np.linalg.norm(out.get().astype(np.float64) - expected)
        assert error / np.linalg.norm(expected) < 2.0**-8
    assert len(kernels.compiled) == 2
