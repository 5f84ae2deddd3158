"""Operations that are worked out together give what each would give alone."""

from __future__ import annotations

import numpy as np

from tests.emulator.kernel import kernel, run

SELECTORS = (0x5140, 0x7362, 0x3210, 0x0123)


def test_constants_inside_operations_stay_apart() -> None:
    """A prmt of one selector is not one of another, however many stand side by side."""
    count = 32
    body = "mov.u32 %r1, %tid.x; mov.u32 %r2, 0x01020304; mad.lo.u32 %r2, %r1, 0x10203, %r2;"
    body += " mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d0, %d2;"
    for index in range(count):
        body += f"prmt.b32 %r{100 + index}, %r2, %r1, {SELECTORS[index % 4]};\n"
    for index in range(count):
        body += f"st.global.u32 [%d3 + {128 * index}], %r{100 + index};\n"
    out = np.zeros((count, 32), np.uint32)
    assert run(kernel(body), out).verdict.value == "clean"
    lanes = np.arange(32, dtype=np.uint64)
    pairs = (0x01020304 + lanes * 0x10203) | lanes << np.uint64(32)
    for index, row in enumerate(out):
        selector = SELECTORS[index % 4]
        expected = sum(
            (pairs >> np.uint64(8 * (selector >> 4 * place & 7)) & np.uint64(255))
            << np.uint64(8 * place)
            for place in range(4)
        )
        np.testing.assert_array_equal(row, expected)
