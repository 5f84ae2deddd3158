"""Integer arithmetic over rows that NumPy has no ufunc for.

Arguments are rows (or scalars) of the instruction's type; results have that type unless said.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def multiply_high(a: Any, b: Any) -> Any:
    """The upper half of the product."""
    dtype = a.dtype
    bits = dtype.itemsize * 8
    if bits < 64:
        wide = np.int64 if dtype.kind == "i" else np.uint64
        product = np.multiply(a, b, dtype=wide)
        return (product >> wide(bits)).astype(dtype)
    x, y = a.view(np.uint64), b.view(np.uint64)
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    carried = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (carried >> half)
    if dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return high.view(dtype)


def multiply_wide(a: Any, b: Any) -> Any:
    """The whole product, twice as wide."""
    return np.multiply(a, b, dtype=np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}"))


def multiply_24(a: Any, b: Any, high: bool) -> Any:
    """Bits 0-31 or 16-47 of the product of the low 24 bits."""
    wide = np.int64 if a.dtype.kind == "i" else np.uint64
    eight = wide(40)
    x = (a.astype(wide) << eight) >> eight
    y = (b.astype(wide) << eight) >> eight
    product = x * y
    return ((product >> wide(16)) if high else product).astype(a.dtype)


def saturate(values: Any, dtype: Any) -> Any:
    """int64 values clamped to a narrower type."""
    bounds = np.iinfo(dtype)
    return np.clip(values, bounds.min, bounds.max).astype(dtype)


def add_saturated(a: Any, b: Any) -> Any:
    return saturate(np.add(a, b, dtype=np.int64), a.dtype)


def subtract_saturated(a: Any, b: Any) -> Any:
    return saturate(np.subtract(a, b, dtype=np.int64), a.dtype)


def magnitude(a: Any) -> Any:
    """The absolute value as an unsigned number; right for the lowest number too."""
    if a.dtype.kind == "u":
        return a
    return np.abs(a).view(np.dtype(f"u{a.dtype.itemsize}"))


def divide(a: Any, b: Any) -> Any:
    """The quotient, rounded towards zero; all bits set where the divisor is zero."""
    x, y = magnitude(a), magnitude(b)
    zero = y == 0
    quotient = (x // np.where(zero, y.dtype.type(1), y)).view(a.dtype)
    if a.dtype.kind == "i":
        quotient = np.where((a < 0) != (b < 0), -quotient, quotient)
    return np.where(zero, ~a.dtype.type(0), quotient)


def remainder(a: Any, b: Any) -> Any:
    """The remainder, with the sign of the dividend; all bits set where the divisor is zero."""
    x, y = magnitude(a), magnitude(b)
    zero = y == 0
    rest = (x % np.where(zero, y.dtype.type(1), y)).view(a.dtype)
    if a.dtype.kind == "i":
        rest = np.where(a < 0, -rest, rest)
    return np.where(zero, ~a.dtype.type(0), rest)


def absolute_difference(a: Any, b: Any) -> Any:
    return np.where(a < b, b - a, a - b)


def bit_length(a: Any) -> Any:
    """One more than the place of the highest set bit of unsigned numbers; int32."""
    if a.dtype.itemsize < 8:
        return np.frexp(a.astype(np.float64))[1]
    high = (a >> np.uint64(32)).astype(np.float64)
    low = (a & np.uint64(0xFFFFFFFF)).astype(np.float64)
    return np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1])


def count_leading_zeros(a: Any) -> Any:
    return (a.dtype.itemsize * 8 - bit_length(a)).astype(np.uint32)


def find_highest(a: Any, shift_amount: bool) -> Any:
    """bfind: the index of the highest bit that differs from the sign, or all ones.

    ``shift_amount`` gives the left shift that brings it to the top instead.
    """
    bits = a.dtype.itemsize * 8
    if a.dtype.kind == "i":
        a = (a ^ (a >> a.dtype.type(bits - 1))).view(np.dtype(f"u{bits // 8}"))
    place = bit_length(a) - 1
    if shift_amount:
        place = np.where(place < 0, place, bits - 1 - place)
    return place.astype(np.int32).view(np.uint32)


def reverse_bits(a: Any) -> Any:
    dtype = a.dtype.type
    masks = (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F)
    for shift, mask in zip((1, 2, 4), masks, strict=True):
        low = dtype(mask & ((1 << (a.dtype.itemsize * 8)) - 1))
        a = ((a >> dtype(shift)) & low) | ((a & low) << dtype(shift))
    return a.byteswap()


def extract_field(a: Any, position: Any, length: Any) -> Any:
    """bfe: ``length`` bits of ``a`` from ``position``; both are uint32, of which 8 bits count.

    Bits past the top are zero, or the field's sign, which is then the top bit.
    """
    bits = a.dtype.itemsize * 8
    unsigned = np.dtype(f"u{bits // 8}")
    position, length = position & np.uint32(255), length & np.uint32(255)
    x = a.view(unsigned)
    keep = low_mask(length, bits)
    field = (x >> position.astype(unsigned)) & keep
    if a.dtype.kind == "u":
        return field
    top = np.minimum(position.astype(np.int64) + length - 1, bits - 1)
    sign = (x >> np.maximum(top, 0).astype(unsigned)) & unsigned.type(1)
    # bits from the sign's place upwards are copies of it
    inside = np.minimum(length, np.maximum(bits - position.astype(np.int64), 0)).astype(np.uint32)
    extended = np.where((sign != 0) & (length > 0), field | ~low_mask(inside, bits), field)
    return np.asarray(extended, unsigned).view(a.dtype)


def low_mask(count: Any, bits: int) -> Any:
    """``count`` (uint32) ones at the bottom of an unsigned word; all of it from ``bits`` on."""
    unsigned = np.dtype(f"u{bits // 8}")
    return ~np.left_shift(~unsigned.type(0), np.asarray(count).astype(unsigned))


def insert_field(a: Any, b: Any, position: Any, length: Any) -> Any:
    """bfi: the low ``length`` bits of ``a`` in place of those of ``b`` from ``position``."""
    bits = a.dtype.itemsize * 8
    position = (position & np.uint32(255)).astype(a.dtype)
    field = np.left_shift(low_mask(length & np.uint32(255), bits), position)
    return (b & ~field) | (np.left_shift(a, position) & field)


def bit_mask(position: Any, length: Any, wrap: bool) -> Any:
    """bmsk: ``length`` ones from ``position``; both clamped to 32 or taken modulo 32."""
    if wrap:
        position, length = position & np.uint32(31), length & np.uint32(31)
    return np.left_shift(low_mask(length, 32), position)


def extend(a: Any, width: Any, wrap: bool) -> Any:
    """szext: the low ``width`` bits of ``a``, sign- or zero-extended as its type says."""
    width = width & np.uint32(31) if wrap else np.minimum(width, np.uint32(32))
    x = a.view(np.uint32)
    keep = low_mask(width, 32)
    low = x & keep
    if a.dtype.kind == "u":
        return low
    negative = np.right_shift(x, np.maximum(width, 1).astype(np.uint32) - np.uint32(1)) & 1
    return np.where((negative != 0) & (width > 0), low | ~keep, low).view(np.int32)


def find_nth_set(mask: Any, base: Any, offset: Any) -> Any:
    """fns: from bit ``base`` of ``mask``, the n-th set bit up (n > 0), down (n < 0), or itself."""
    arrays = np.broadcast_arrays(mask, base, offset)
    found = np.full(arrays[0].shape, 0xFFFFFFFF, np.uint32)
    columns = zip(*(array.tolist() for array in arrays), strict=True)
    for lane, (bits, start, count) in enumerate(columns):
        if count == -(1 << 31):  # has no opposite: an H200 gives 0
            found[lane] = 0
            continue
        step = -1 if count < 0 else 1
        wanted = max(abs(count), 1)
        if start > 31:
            continue
        places = [start] if count == 0 else range(start, 32 if step > 0 else -1, step)
        seen = 0
        for place in places:
            if 0 <= place < 32 and bits >> place & 1:
                seen += 1
                if seen == wanted:
                    found[lane] = place
                    break
    return found


def piece(a: Any, index: int, bits: int, signed: bool) -> Any:
    """The ``index``-th byte or half word of 32-bit words, as int64."""
    low = (np.asarray(a).view(np.uint32) >> np.uint32(index * bits)) & np.uint32((1 << bits) - 1)
    values = low.astype(np.int64)
    return values - ((values >> (bits - 1)) << bits) if signed else values


def dot_bytes(a: Any, b: Any, c: Any) -> Any:
    """dp4a: ``c`` plus the products of four bytes, modulo 2^32."""
    total = c.astype(np.int64)
    for index in range(4):
        left = piece(a, index, 8, a.dtype.kind == "i")
        total = total + left * piece(b, index, 8, b.dtype.kind == "i")
    return total.astype(np.uint32)


def dot_halves(a: Any, b: Any, c: Any, high: bool) -> Any:
    """dp2a: ``c`` plus two half words of ``a`` times the low or high two bytes of ``b``."""
    total = c.astype(np.int64)
    for index in range(2):
        left = piece(a, index, 16, a.dtype.kind == "i")
        total = total + left * piece(b, index + 2 * high, 8, b.dtype.kind == "i")
    return total.astype(np.uint32)


def add_with_carry(a: Any, b: Any, carry: Any) -> tuple[Any, Any]:
    """Sum of unsigned numbers and of a carry (bool), and the carry out."""
    low = a + b
    total = low + carry.astype(a.dtype)
    return total, (low < a) | (total < low)


def subtract_with_carry(a: Any, b: Any, carry: Any) -> tuple[Any, Any]:
    """Difference of unsigned numbers, and the carry out, which says that nothing was borrowed.

    So it is on an H200, where it can be seen by adding after a subtraction.
    """
    return add_with_carry(a, ~b, carry)
