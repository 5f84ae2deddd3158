from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.errors import ConfigError
from fa4gen.verify.rounding import (
    LARGEST,
    POISON_BITS,
    from_bits,
    numpy_dtype,
    round_to,
    to_bits,
)

FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


def cast(values: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return values.astype(numpy_dtype(dtype)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@given(numbers=st.lists(FINITE, min_size=0, max_size=40))
@settings(deadline=None)
def test_round_to_is_the_cast_there_and_back(dtype, numbers) -> None:
    values = np.array(numbers, dtype=np.float32)
    np.testing.assert_array_equal(round_to(values, dtype), cast(values, dtype))


@pytest.mark.parametrize("step", [2.0**-26, 2.0**-25, 2.0**-24, 2.0**-12, 2.0**-11, 8.0, 16.0])
def test_fp16_ties_and_subnormals(step) -> None:
    values = (np.arange(-9000, 9000, dtype=np.float32)) * np.float32(step)
    np.testing.assert_array_equal(round_to(values, "fp16"), cast(values, "fp16"))


def test_fp16_beyond_the_largest_is_infinite() -> None:
    values = np.array([65504, 65519, 65520, -65520, 1e30], dtype=np.float32)
    expected = np.array([65504, 65504, np.inf, -np.inf, np.inf], dtype=np.float32)
    np.testing.assert_array_equal(round_to(values, "fp16"), expected)


def test_bf16_without_ml_dtypes_as_on_a_gpu() -> None:
    class OtherModule:  # what round_to uses of cupy, done by numpy
        ascontiguousarray = staticmethod(np.ascontiguousarray)
        uint32, float32 = np.uint32, np.float32

    values = np.random.default_rng(1).standard_normal(10_000, dtype=np.float32)
    values[:4] = [0, -0.0, 2.0**-130, 1.00390625]  # the last is a tie
    np.testing.assert_array_equal(round_to(values, "bf16", OtherModule), cast(values, "bf16"))


@given(numbers=st.lists(FINITE | st.floats(-500, 500, width=32), min_size=0, max_size=40))
@settings(deadline=None)
def test_fp8_is_rounded_as_by_the_cast_and_saturates(numbers) -> None:
    values = np.array(numbers, dtype=np.float32)
    expected = cast(np.clip(values, -448, 448), "fp8_e4m3")
    np.testing.assert_array_equal(round_to(values, "fp8_e4m3"), expected)
    np.testing.assert_array_equal(from_bits(to_bits(values, "fp8_e4m3"), "fp8_e4m3"), expected)


def test_every_number_of_fp8_stays_and_ties_go_to_even() -> None:
    bits = np.arange(256, dtype=np.uint8)
    values = from_bits(bits, "fp8_e4m3")
    finite = np.isfinite(values)
    assert np.flatnonzero(~finite).tolist() == [0x7F, 0xFF]
    np.testing.assert_array_equal(round_to(values[finite], "fp8_e4m3"), values[finite])
    positive = values[:0x7F]
    middles = (positive[1:] + positive[:-1]) / 2
    even = np.where(np.arange(len(middles)) % 2 == 0, positive[:-1], positive[1:])
    np.testing.assert_array_equal(round_to(middles, "fp8_e4m3"), even)
    np.testing.assert_array_equal(to_bits(np.float32([1e9, -449]), "fp8_e4m3"), [0x7E, 0xFE])


def test_largest_numbers() -> None:
    assert float(ml_dtypes.finfo(ml_dtypes.bfloat16).max) == LARGEST["bf16"]
    assert float(np.finfo(np.float16).max) == LARGEST["fp16"]
    assert float(ml_dtypes.finfo(ml_dtypes.float8_e4m3fn).max) == LARGEST["fp8_e4m3"]


def test_poison_is_a_signalling_nan() -> None:
    for dtype, mantissa_bits in (("bf16", 7), ("fp16", 10), ("fp32", 23)):
        width = 4 if dtype == "fp32" else 2
        value = np.frombuffer(POISON_BITS[dtype].to_bytes(width, "little"), numpy_dtype(dtype))[0]
        with np.errstate(invalid="ignore"):
            assert np.isnan(value)
        quiet = POISON_BITS[dtype] >> (mantissa_bits - 1) & 1
        assert quiet == 0


def test_unknown_type() -> None:
    with pytest.raises(ConfigError, match="types bf16, fp16, fp8_e4m3, fp32"):
        numpy_dtype("fp4")
