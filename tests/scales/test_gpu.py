"""Quantising and arranging on a GPU: the same bits as NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from fa4gen.scales import arrange, dequantize, quantize, restore
from fa4gen.scales.forms import FORMS

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
