"""Bit patterns of narrow floats, against ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fa4gen.scales.narrow import ELEMENTS, decode, encode, pack_pairs, unpack_pairs

TYPES = {
    "fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "fp4_e2m1": ml_dtypes.float4_e2m1fn,
}


def theirs(values: np.ndarray, name: str) -> np.ndarray:
    return values.astype(TYPES[name]).view(np.uint8)


@pytest.mark.parametrize("name", ELEMENTS)
def test_every_pattern_has_its_number(name: str) -> None:
    patterns = np.arange(1 << ELEMENTS[name].bits, dtype=np.uint8)
    expected = patterns.view(TYPES[name]).astype(np.float32)
    np.testing.assert_array_equal(decode(patterns, ELEMENTS[name]), expected)


@pytest.mark.parametrize("name", ELEMENTS)
@settings(max_examples=300, deadline=None)
@given(bits=st.integers(0, 2**32 - 1))
@example(bits=0x80000000)
@example(bits=1)
def test_any_float_is_rounded_to_nearest_even(name: str, bits: int) -> None:
    value = np.array([bits], np.uint32).view(np.float32)
    if np.isnan(value[0]) or abs(value[0]) > ELEMENTS[name].largest:
        return
    np.testing.assert_array_equal(encode(value, ELEMENTS[name]), theirs(value, name))


@pytest.mark.parametrize("name", ELEMENTS)
def test_halfway_between_two_numbers_and_just_beside(name: str) -> None:
    patterns = np.arange(1 << ELEMENTS[name].bits, dtype=np.uint8)
    numbers = decode(patterns, ELEMENTS[name])
    numbers = np.unique(numbers[np.isfinite(numbers)])
    halfway = ((numbers[1:].astype(np.float64) + numbers[:-1]) / 2).astype(np.float32)
    up, down = (np.nextafter(halfway, np.float32(end)) for end in (np.inf, -np.inf))
    values = np.concatenate([numbers, halfway, up, down])
    np.testing.assert_array_equal(encode(values, ELEMENTS[name]), theirs(values, name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fp8_e4m3", [0x7E, 0xFE, 0x7E, 0x7F]),
        ("fp8_e5m2", [0x7B, 0xFB, 0x7B, 0x7F]),
        ("fp4_e2m1", [0x7, 0xF, 0x7, 0x7]),
    ],
)
def test_what_is_too_large_becomes_the_largest(name: str, expected: list[int]) -> None:
    values = np.array([np.inf, -np.inf, 3e38, np.nan], np.float32)
    assert encode(values, ELEMENTS[name]).tolist() == expected


def test_pairs_have_the_even_element_in_the_low_half() -> None:
    patterns = np.arange(8, dtype=np.uint8).reshape(2, 4)
    packed = pack_pairs(patterns)
    assert packed.tolist() == [[0x10, 0x32], [0x54, 0x76]]
    np.testing.assert_array_equal(unpack_pairs(packed), patterns)
