from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.emulator.instructions.copy.swizzle import box_order, swizzle

MODES = [(32, 16), (64, 16), (128, 16), (128, 32), (128, 64)]


def bits(value: int, high: int, low: int) -> int:
    return (value >> low) & ((1 << (high - low + 1)) - 1)


@given(st.integers(0, 1 << 17))
def test_each_mode_xors_the_bits_that_the_documentation_names(address: int) -> None:
    assert swizzle(address, 0) == address
    assert swizzle(address, 32) == address ^ bits(address, 7, 7) << 4
    assert swizzle(address, 64) == address ^ bits(address, 8, 7) << 4
    assert swizzle(address, 128) == address ^ bits(address, 9, 7) << 4
    assert swizzle(address, 128, 32) == address ^ bits(address, 8, 7) << 5
    assert swizzle(address, 128, 64) == address ^ bits(address, 7, 7) << 6


@pytest.mark.parametrize(("span", "atom"), MODES)
def test_it_is_its_own_inverse_and_stays_in_the_line(span: int, atom: int) -> None:
    address = np.arange(4096)
    physical = swizzle(address, span, atom)
    assert np.array_equal(swizzle(physical, span, atom), address)
    assert np.array_equal(physical // span, address // span)


@pytest.mark.parametrize(("span", "atom"), MODES)
@pytest.mark.parametrize("phase", [0, 3, 7])
def test_the_order_of_a_box_names_the_chunk_of_every_address(
    span: int, atom: int, phase: int
) -> None:
    lines, chunks = 20, span // 16 - 1
    order = box_order(lines, chunks, phase, span, atom).reshape(lines, chunks)
    start = 128 * phase
    for line in range(lines):
        for chunk in range(chunks):
            address = start + line * span + chunk * 16
            assert start + order[line, chunk] * 16 == swizzle(address, span, atom)
