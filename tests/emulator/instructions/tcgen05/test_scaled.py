"""Block-scaled products: .kind::mxf8f6f4, mxf4 and mxf4nvf4."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from fa4gen.emulator import Verdict
from tests.emulator.instructions.tcgen05.kernels import kinds, launch, program
from tests.emulator.instructions.tcgen05.products import (
    before,
    by_thread_0,
    columns_from_shared,
    issue,
    lay_out,
    outcome,
    times,
)

M, N = 128, 64
# E2M1 by its code
FOUR_BITS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def scale_bytes(rng, kind: str, rows: int, count: int):
    """Codes of scale factors and their values, powers of two or small e4m3 numbers."""
    if kind == "ue8m0":
        codes = rng.integers(124, 130, (rows, count), np.uint8)
        return codes, 2.0 ** (codes.astype(np.float64) - 127)
    values = rng.integers(1, 8, (rows, count)).astype(ml_dtypes.float8_e4m3fn)
    return values.view(np.uint8), values.astype(np.float64)


def columns_of(codes, byte: int) -> np.ndarray:
    """Factors of rows in tensor memory: row m in lane m % 32 of each quarter, column m / 32."""
    rows, count = codes.shape
    cells = np.zeros((128, rows // 32, 4), np.uint8)
    for row in range(rows):
        for quarter in range(4):
            cells[quarter * 32 + row % 32, row // 32, byte : byte + count] = codes[row]
    return cells.view(np.uint32)[:, :, 0]


def operand(rng, kind: str, rows: int):
    """(bytes as they are stored, values) of 32 bytes of K."""
    if kind == "mxf8f6f4":
        values = rng.integers(-3, 4, (rows, 32)).astype(ml_dtypes.float8_e4m3fn)
        return values, values.astype(np.float64)
    codes = rng.integers(0, 16, (rows, 64), np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4, FOUR_BITS[codes]


def scaled(
    kind: str,
    words: str,
    count: int,
    scale: str,
    ids=(0, 0),
    *,
    spoil: bool = False,
    ids_in_addresses: bool = False,
):
    rng = np.random.default_rng(5)
    (a, a_values), (b, b_values) = operand(rng, kind, M), operand(rng, kind, N)
    a_codes, a_scales = scale_bytes(rng, scale, M, count)
    b_codes, b_scales = scale_bytes(rng, scale, N, count)
    factors = np.concatenate([columns_of(a_codes, ids[0]), columns_of(b_codes, ids[1])], axis=1)
    factors = np.ascontiguousarray(np.pad(factors, ((0, 0), (0, 2))))
    if spoil:
        factors[40, 0] ^= 1
    data, steps = lay_out(a, b, columns=factors)
    element = 0 if kind == "mxf8f6f4" else 1
    bits = element << 7 | element << 10 | ids[1] << 4 | (N >> 3) << 17 | (M >> 7) << 27
    bits |= ids[0] << 29 | (scale == "ue8m0") << 23
    places = [N, N + 4]
    if ids_in_addresses:  # as offsets with a sign
        places = [
            at + (byte << 30) - (byte >> 1 << 32) for at, byte in zip(places, ids, strict=True)
        ]
    text = issue(f"{kind}.block_scale{words}", 1, bits, steps, first=True,
                 words=f", [%r9+{places[0]}], [%r9+{places[1]}]")  # fmt: skip
    report, cells = outcome(text, N, data, setup=columns_from_shared(8, N))
    per = a_values.shape[1] // count
    exact = times(a_values * np.repeat(a_scales, per, 1), b_values * np.repeat(b_scales, per, 1))
    return report, cells[0].view(np.float32), exact


@pytest.mark.parametrize(
    ("kind", "words", "count", "scale", "ids"),
    [
        ("mxf8f6f4", "", 1, "ue8m0", (0, 0)),
        ("mxf8f6f4", ".scale_vec::1X", 1, "ue8m0", (3, 1)),
        ("mxf4", ".block32", 2, "ue8m0", (0, 2)),
        ("mxf4nvf4", ".scale_vec::2X", 2, "ue8m0", (2, 0)),
        ("mxf4nvf4", ".scale_vec::4X", 4, "ue4m3", (0, 0)),
        ("mxf4nvf4", ".block16", 4, "ue4m3", (0, 0)),
    ],
)
def test_blocks_have_their_factors(kind, words, count, scale, ids) -> None:
    report, cells, exact = scaled(kind, words, count, scale, ids)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert np.allclose(cells, exact, rtol=1e-6, atol=1e-5)
    assert not np.allclose(cells, before(N).view(np.float32))


@pytest.mark.parametrize("ids", [(3, 1), (1, 2)])
def test_an_id_in_an_address_selects_nothing(ids) -> None:
    report, cells, exact = scaled("mxf8f6f4", "", 1, "ue8m0", ids, ids_in_addresses=True)
    assert report.verdict is Verdict.CLEAN, str(report)
    assert np.allclose(cells, exact, rtol=1e-6, atol=1e-5)


def test_factors_are_the_same_in_all_quarters() -> None:
    report, _, _ = scaled("mxf8f6f4", "", 1, "ue8m0", spoil=True)
    assert "tensor-memory" in kinds(report)


def test_four_factors_need_the_whole_column() -> None:
    report, _, _ = scaled("mxf4nvf4", ".scale_vec::4X", 4, "ue4m3")
    assert report.verdict is Verdict.CLEAN
    bad = issue("mxf4nvf4.block_scale.scale_vec::4X", 1,
                1 << 7 | 1 << 10 | 2 << 4 | (N >> 3) << 17 | 1 << 27, [(1 << 46, 1 << 46)],
                words=", [%r9], [%r9]")  # fmt: skip
    data = np.zeros(16384, np.uint8)
    assert "descriptor" in kinds(launch(program(by_thread_0(bad), size=16384), data, np.zeros(1)))
