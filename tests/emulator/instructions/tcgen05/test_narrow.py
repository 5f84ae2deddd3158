"""Operands of 4 and 6 bits in shared memory: sixteen at the beginning of each 16-byte chunk.

Their values are worked out here from sign, exponent and fraction.
"""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from fa4gen.emulator.errors import UnsupportedError
from tests.emulator.instructions.tcgen05.kernels import kinds, launch, program, wait
from tests.emulator.instructions.tcgen05.products import (
    COMMIT,
    SYNC,
    by_thread_0,
    idesc,
    issue,
    lay_out,
    outcome,
)
from tests.emulator.instructions.tcgen05.tiles import descriptor

TILE = ".shared .align 1024 .b8 tile[20512]"
# type -> code in the instruction descriptor, bits of exponent and fraction
NARROW = {"e2m1": (5, 2, 1), "e2m3": (3, 2, 3), "e3m2": (4, 3, 2)}
M, N, K = 128, 32, 128


def value(code: int, exponent_bits: int, fraction_bits: int) -> float:
    fraction = code & (1 << fraction_bits) - 1
    exponent = code >> fraction_bits & (1 << exponent_bits) - 1
    sign = -1.0 if code >> (exponent_bits + fraction_bits) else 1.0
    bias = (1 << exponent_bits - 1) - 1
    if not exponent:
        return sign * fraction * 2.0 ** (1 - bias - fraction_bits)
    return sign * (1 + fraction / 2**fraction_bits) * 2.0 ** (exponent - bias)


def operand(kind: str, rows: int, seed: int):
    """(bytes in shared memory, values) of a K-major matrix; padding is noise."""
    rng = np.random.default_rng(seed)
    if kind == "e4m3":
        import ml_dtypes

        whole = rng.integers(-3, 4, (rows, K)).astype(ml_dtypes.float8_e4m3fn)
        return whole.view(np.uint8), whole.astype(np.float64)
    _, exponent, fraction = NARROW[kind]
    bits = 1 + exponent + fraction
    codes = rng.integers(0, 1 << bits, (rows, K))
    stored = rng.integers(0, 256, (rows, K), np.uint8)
    for row in range(rows):
        for first in range(0, K, 16):
            group = sum(int(codes[row, first + n]) << bits * n for n in range(16))
            data = np.frombuffer(group.to_bytes(2 * bits, "little"), np.uint8)
            stored[row, first : first + 2 * bits] = data
    values = np.vectorize(lambda code: value(int(code), exponent, fraction))(codes)
    return stored, values


def code(kind: str) -> int:
    return 0 if kind == "e4m3" else NARROW[kind][0]


@pytest.mark.parametrize(
    ("a", "b", "span"),
    [
        ("e2m1", "e2m1", 128), ("e2m3", "e4m3", 128), ("e4m3", "e3m2", 64),
        ("e3m2", "e2m1", 0), ("e4m3", "e2m3", 32),
    ],
)  # fmt: skip
def test_products(a: str, b: str, span: int) -> None:
    (a_bytes, a_values), (b_bytes, b_values) = operand(a, M, 1), operand(b, N, 2)
    tiles, steps = lay_out(a_bytes, b_bytes, span)
    text = issue("f8f6f4", 1, idesc(M, N, code(a), code(b)), steps, first=True)
    report, cells = outcome(text, N, tiles, filled=False)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert (cells[0].view(np.float32) == a_values @ b_values.T).all()


def test_narrow_operands_are_k_major() -> None:
    text = issue("f8f6f4", 1, idesc(M, N, 0, 5, tb=1), [(1 << 46, 1 << 46)], first=True)
    data = np.zeros(16384, np.uint8)
    assert "descriptor" in kinds(launch(program(by_thread_0(text), size=16384), data, np.zeros(1)))


def test_narrow_operands_in_tensor_memory_are_refused() -> None:
    text = issue("f8f6f4", 1, idesc(M, N, 5, 0), [(0, 1 << 46)], tensor_a=True, first=True)
    data = np.zeros(16384, np.uint8)
    with pytest.raises(UnsupportedError, match="in figures only"):
        launch(program(by_thread_0(text), size=16384), data, np.zeros(1))


@pytest.mark.parametrize(("kind", "code", "data"), [("e2m1", 5, 8), ("e2m3", 3, 12)])
def test_padding_need_not_be_written(kind: str, code: int, data: int) -> None:
    """Only the bytes of elements do: without the last word of them the product reads nothing."""
    for written, found in ((data, []), (data - 4, ["uninitialised"])):
        stores = "".join(
            f"st.shared.b32 [%r7+{chunk + 4 * word}], %r8;"
            for chunk in range(0, 128, 16)
            for word in range(written // 4)
        )
        a, b = descriptor(0, 0, 1024, 128), descriptor(16384, 0, 1024, 128)
        body = f"""
        mov.u32 %r8, 0; shl.b32 %r7, %r0, 7; add.u32 %r7, %r7, %r2; {stores}
        setp.lt.u32 %p5, %r0, 32; @!%p5 bra FILLED; add.u32 %r7, %r7, 16384; {stores}
        FILLED: fence.proxy.async.shared::cta;
        """
        steps = [(a + 2 * n, b + 2 * n) for n in range(4)]
        text = issue("f8f6f4", 1, idesc(M, N, code, code), steps, first=True)
        body += SYNC + by_thread_0(text + COMMIT) + wait()
        ptx = program(body).replace(".shared .align 1024 .b8 tile[32]", TILE)
        report = launch(ptx.replace("[tile+", "[tile+20480+"), np.zeros(1), np.zeros(1))
        assert kinds(report)[:1] == found, (kind, written, report)
