"""Matrix descriptors, bit by bit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fa4gen.emulator.instructions.mma.descriptors import Descriptor, DescriptorError, decode

FIELD = st.integers(0, (1 << 14) - 1)


@given(
    FIELD, FIELD, FIELD, st.integers(0, 7), st.sampled_from([(0, 0), (1, 128), (2, 64), (3, 32)])
)
def test_fields_of_hopper(
    address: int, leading: int, stride: int, base: int, swizzle: tuple[int, int]
) -> None:
    code, span = swizzle
    bits = address | leading << 16 | stride << 32 | base << 49 | code << 62
    assert decode(bits, 90) == Descriptor(
        16 * address, 16 * leading, 16 * stride, base, span, atom=16
    )


@pytest.mark.parametrize("sm", [100, 103])
@pytest.mark.parametrize(("code", "span", "atom"), [
    (0, 0, 16), (1, 128, 32), (2, 128, 16), (4, 64, 16), (6, 32, 16),
])  # fmt: skip
def test_fields_of_blackwell(code: int, span: int, atom: int, sm: int) -> None:
    bits = 0x240 | 2 << 16 | 64 << 32 | 1 << 46 | 5 << 49 | code << 61
    assert decode(bits, sm) == Descriptor(0x2400, 32, 1024, 5, span, atom)


@pytest.mark.parametrize("bit", [14, 15, 30, 31, 46, 47, 48, *range(52, 62)])
def test_reserved_bits_of_hopper(bit: int) -> None:
    with pytest.raises(DescriptorError, match="reserved"):
        decode(1 << bit, 90)


@pytest.mark.parametrize("bit", [14, 15, 30, 31, *range(53, 61)])
def test_reserved_bits_of_blackwell(bit: int) -> None:
    with pytest.raises(DescriptorError, match="reserved"):
        decode(1 << 46 | 1 << bit, 100)


@pytest.mark.parametrize("constant", [0, 2, 3, 4, 5, 6, 7])
def test_the_constant_of_blackwell(constant: int) -> None:
    with pytest.raises(DescriptorError, match=f"bits 46-48 are {constant}"):
        decode(constant << 46, 100)


@pytest.mark.parametrize("code", [3, 5, 7])
def test_codes_that_are_no_swizzle(code: int) -> None:
    with pytest.raises(DescriptorError, match=f"{code} is no swizzle mode"):
        decode(1 << 46 | code << 61, 100)
