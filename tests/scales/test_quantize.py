"""Quantising with block scales, against the definition written out for one block."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.errors import ArgumentError
from fa4gen.scales import as_mxfp8, dequantize, form_of, quantize
from fa4gen.scales.forms import FORMS
from fa4gen.scales.quantize import scale_values

F32 = np.float32
NUMPY = {
    "fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "fp4_e2m1": ml_dtypes.float4_e2m1fn,
}
LARGEST = {"fp8_e4m3": 448, "fp8_e5m2": 57344, "fp4_e2m1": 6}


def draw(rows: int, columns: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    powers = rng.integers(-20, 20, (rows, columns))
    return (rng.standard_normal((rows, columns)) * 2.0**powers).astype(F32)


def one_block(block: Any, form: Any, tensor_scale: float) -> Any:
    """Return the numbers that elements and scale of a block stand for, by ml_dtypes."""
    largest = F32(LARGEST[form.element])
    amax = np.maximum(np.abs(block).max(), F32(2.0**-100))
    if form.scale == "fp32":
        scale, factor = amax / largest, largest / amax
    elif form.scale == "ue8m0":
        scale = F32(2.0 ** np.ceil(np.log2(np.float64(amax / largest))))
        factor = F32(1) / scale
    else:
        encode = F32(1) / F32(tensor_scale)
        wanted = np.clip(amax / largest * encode, F32(2.0**-9), F32(448))
        scale = F32(wanted.astype(ml_dtypes.float8_e4m3fn))
        factor = encode / scale
    scaled = np.clip(block * factor, -largest, largest)
    return scaled.astype(NUMPY[form.element]).astype(F32) * (scale * F32(tensor_scale))


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize(("rows", "columns"), [(1, 16), (5, 384), (130, 200), (256, 258)])
def test_blocks_are_those_of_the_definition(name: str, rows: int, columns: int) -> None:
    x = draw(rows, columns)
    done = quantize(x, name)
    form, got = done.form, dequantize(done)
    for row in range(0, rows, form.rows):
        for column in range(0, columns, form.columns):
            place = np.s_[row : row + form.rows, column : column + form.columns]
            expected = one_block(x[place], form, done.tensor_scale)
            np.testing.assert_array_equal(got[place], expected)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("1x128", {"scale": "ue8m0"}),
        ("128x128", {"scale": "ue8m0", "element": "fp8_e5m2"}),
        ("1x128", {"element": "fp8_e5m2"}),
        ("mxfp8", {"element": "fp8_e5m2"}),
    ],
)
def test_other_types_of_elements_and_scales(name: str, more: dict[str, str]) -> None:
    x = draw(130, 300)
    done = quantize(x, name, **more)
    assert (done.form.element, done.form.scale) == (
        more.get("element", "fp8_e4m3"),
        more.get("scale", form_of(name).scale),
    )
    first = x[: done.form.rows, : done.form.columns]
    got = dequantize(done)[: done.form.rows, : done.form.columns]
    np.testing.assert_array_equal(got, one_block(first, done.form, 1.0))


@pytest.mark.parametrize("name", FORMS)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), exponent=st.integers(-90, 100))
def test_errors_are_within_half_a_step(name: str, seed: int, exponent: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((2, 64)) * 2.0**exponent).astype(F32)
    done = quantize(x, name)
    amax = np.abs(x).max()
    step = {"fp8_e4m3": 2.0**-4, "fp4_e2m1": 2.0**-2}[done.form.element]
    power_of_two = 2 if done.form.scale == "ue8m0" else 1.2
    assert np.abs(dequantize(done) - x).max() <= step * amax * power_of_two


@pytest.mark.parametrize("name", FORMS)
def test_zeros_stay_zeros(name: str) -> None:
    done = quantize(np.zeros((3, 256), F32), name)
    assert not dequantize(done).any()
    assert np.isfinite(scale_values(done.scales, done.form)).all()


@pytest.mark.parametrize("name", FORMS)
def test_a_nan_is_seen_in_its_element_or_block_alone(name: str) -> None:
    x = draw(256, 256, 3)
    x[7, 40] = np.nan
    done = quantize(x, name)
    is_nan = np.isnan(dequantize(done))
    expected = np.zeros_like(is_nan)
    if done.form.element == "fp4_e2m1":
        begin = 40 // done.form.columns * done.form.columns
        expected[7, begin : begin + done.form.columns] = True
    else:
        expected[7, 40] = True
    np.testing.assert_array_equal(is_nan, expected)


def test_an_infinity_is_the_largest_float() -> None:
    x = draw(1, 128)
    x[0, 5] = -np.inf
    got = dequantize(quantize(x, "1x128"))
    assert got[0, 5] == -np.finfo(F32).max
    assert not got[0, :5].any()


@pytest.mark.parametrize("name", FORMS)
def test_above_the_largest_float_it_is_an_infinity_without_a_warning(name: str) -> None:
    x = np.zeros((128, 128), F32)
    x[0, 5] = np.inf
    got = dequantize(quantize(x, name))
    assert got[0, 5] > 0.8 * np.finfo(F32).max
    assert np.count_nonzero(got) == 1


def test_shapes() -> None:
    x = draw(300, 400).reshape(2, 150, 400)
    for name, rows, columns in (("1x128", 150, 4), ("128x128", 2, 4), ("nvfp4", 150, 25)):
        done = quantize(x, name)
        assert done.scales.shape == (2, rows, columns)
        assert done.elements.shape == (2, 150, 200 if name == "nvfp4" else 400)
        assert done.elements.dtype == np.uint8


def test_narrower_inputs_are_taken() -> None:
    x = draw(4, 256).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(
        quantize(x, "1x128").elements, quantize(x.astype(F32), "1x128").elements
    )


def test_a_given_tensor_scale_is_taken() -> None:
    x = draw(4, 256)
    assert quantize(x, "nvfp4", tensor_scale=0.25).tensor_scale == 0.25


@pytest.mark.parametrize("form", ["1x128", "128x128", "mxfp8"])
@pytest.mark.parametrize("element", ["fp8_e4m3", "fp8_e5m2"])
def test_blocks_of_128_are_what_mxfp8_can_say(form: str, element: str) -> None:
    """A weight that was quantised for Hopper is one for Blackwell, without rounding it again."""
    given = {} if form == "mxfp8" else {"scale": "ue8m0"}
    done = quantize(draw(200, 336), form, element=element, **given)
    small = as_mxfp8(done)
    assert (small.form.name, small.scales.shape) == ("mxfp8", (200, 11))
    assert small.elements is done.elements
    np.testing.assert_array_equal(dequantize(small), dequantize(done))


@pytest.mark.parametrize("form", ["1x128", "nvfp4"])
def test_other_scales_are_not_mxfp8(form: str) -> None:
    with pytest.raises(ArgumentError, match=f"expected fp8 with scales of ue8m0, got .* {form}"):
        as_mxfp8(quantize(draw(4, 256), form))


def test_torch_tensors_give_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = draw(130, 256)
    for name in FORMS:
        ours, done = quantize(x, name), quantize(torch.from_numpy(x), name)
        assert isinstance(done.elements, torch.Tensor)
        np.testing.assert_array_equal(done.elements.numpy(), ours.elements)
        np.testing.assert_array_equal(done.scales.numpy(), ours.scales)


@pytest.mark.parametrize(
    ("keywords", "shape", "message"),
    [
        ({"form": "1x64"}, (4, 256), "form: expected 1x128 or 128x128 or mxfp8"),
        ({"form": "nvfp4", "element": "fp8_e5m2"}, (4, 256), "element of nvfp4"),
        ({"form": "mxfp8", "scale": "fp32"}, (4, 256), "scale of mxfp8: expected ue8m0"),
        ({"form": "mxfp4"}, (4, 255), "packs two elements a byte, and k is 255"),
        ({"form": "1x128"}, (256,), "expected (..., rows, k), got shape (256,)"),
        ({"form": "1x128", "tensor_scale": 1.0}, (4, 256), "tensor_scale: 1x128 has none"),
        ({"form": "nvfp4", "tensor_scale": 0.0}, (4, 256), "a number above zero, got 0.0"),
    ],
)
def test_refusals(keywords: dict[str, Any], shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        quantize(np.zeros(shape, F32), **keywords)
    assert message in str(caught.value)
