"""Operand tiles against the address formulas written out element by element."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator.instructions.mma.descriptors import Descriptor, decode
from fa4gen.emulator.instructions.mma.operand_tiles import (
    inside,
    read_tiles,
    tile_offsets,
    tile_ranges,
    values_of,
)
from fa4gen.emulator.state.memory import SharedMemory
from tests.emulator.instructions.tensor_cores import place

SPANS = (0, 32, 64, 128)


def encode(address: int, leading: int, stride: int, span: int, base: int, sm: int) -> int:
    low = address >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | base << 49
    if sm == 90:
        return low | {0: 0, 128: 1, 64: 2, 32: 3}[span] << 62
    return low | 1 << 46 | {0: 0, 128: 2, 64: 4, 32: 6}[span] << 61


def expected(d: Descriptor, k_major: bool, mn: int, k: int, size: int) -> int:
    """The byte of element (mn, k)."""
    layout = {"leading": d.leading, "stride": d.stride, "span": d.span, "size": size}
    at = d.address + place(mn, k, k_major=k_major, **layout)
    line = ((at >> 7) - d.base_offset) & 7
    return at ^ (line & (d.span // 16 - 1)) << 4 if d.span else at


@pytest.mark.parametrize("sm", [90, 100])
@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("k_major", [True, False])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_offsets(sm: int, span: int, k_major: bool, size: int) -> None:
    for address, base in ((0x2400, 0), (0x2580, 0), (0x2400, 3)):
        d = decode(encode(address, 4096, 1024, span, base, sm), sm)
        offsets = tile_offsets(d, k_major, 64, 32 // size, size)
        wanted = [
            [expected(d, k_major, mn, k, size) for k in range(32 // size)] for mn in range(64)
        ]
        assert offsets.tolist() == wanted


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("k_major", [True, False])
@pytest.mark.parametrize("kind", ["bf16", "f16", "tf32", "e4m3", "e5m2", "s8", "u8"])
def test_values_are_those_at_the_offsets(span: int, k_major: bool, kind: str) -> None:
    size = {"bf16": 2, "f16": 2, "tf32": 4}.get(kind, 1)
    shared = SharedMemory(60_000)
    shared.data[:] = np.random.default_rng(1).integers(0, 256, len(shared.data))
    d = decode(encode(0x4400, 4096, 1024, span, 0, 90), 90)
    values = read_tiles(shared, (d,), k_major, 64, 32 // size, kind)
    offsets = tile_offsets(d, k_major, 64, 32 // size, size)
    raw = np.stack([shared.data[offsets + byte] for byte in range(size)], axis=-1)
    wanted = values_of(raw.view(f"u{size}")[..., 0], kind)
    assert np.array_equal(values, wanted, equal_nan=kind not in ("s8", "u8"))


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("k_major", [True, False])
def test_ranges_cover_the_elements_and_nothing_else(span: int, k_major: bool) -> None:
    d = decode(encode(0x4400, 8192, 1024, span, 0, 90), 90)
    touched = set()
    for start, stop in tile_ranges(d, k_major, 128, 16, 2):
        touched.update(range(start, stop))
    offsets = tile_offsets(d, k_major, 128, 16, 2).ravel()
    assert touched == set(offsets.tolist()) | set((offsets + 1).tolist())


def test_what_is_outside_shared_memory() -> None:
    d = decode(encode(0x2400, 0, 1024, 128, 0, 90), 90)
    assert inside(SharedMemory(0x2400 + 8192), d, True, 64, 64, 2)
    assert not inside(SharedMemory(0x2400 + 8191), d, True, 64, 64, 2)
    low = decode(encode(0, 0, 1024, 128, 0, 90), 90)
    assert not inside(SharedMemory(60_000), low, True, 64, 64, 2)  # the system's first KiB


def test_atoms_of_32_bytes() -> None:
    """Transposed 32-bit operands of tcgen05: groups of four k, an XOR of bits 5 and 6."""
    d = Descriptor(0x2400, 4096, 512, 0, 128, 32)
    offsets = tile_offsets(d, False, 64, 8, 4)
    for mn in range(64):
        for k in range(8):
            at = 0x2400 + mn % 32 * 4 + mn // 32 * 4096 + k % 4 * 128 + k // 4 * 512
            assert offsets[mn, k] == at ^ (at >> 7 & 3) << 5


@pytest.mark.parametrize("k_major", [True, False])
@pytest.mark.parametrize("span", SPANS)
def test_tiles_side_by_side(span: int, k_major: bool) -> None:
    shared = SharedMemory(60_000)
    shared.data[:] = np.random.default_rng(2).integers(0, 120, len(shared.data))
    tiles = [
        decode(encode(address, 4096, 1024, span, 0, 90), 90)
        for address in (0x4420, 0x4440, 0x2400, 0x4420)
    ]
    wanted = [read_tiles(shared, (tile,), k_major, 64, 16, "f16") for tile in tiles]
    joined = read_tiles(shared, tiles, k_major, 64, 16, "f16")
    assert np.array_equal(joined, np.concatenate(wanted, axis=1), equal_nan=True)


@pytest.mark.parametrize(
    ("kind", "code", "value"),
    [
        ("bf16", 0xBFC0, -1.5), ("f16", 0x0001, 2.0**-24), ("tf32", 0x3F801FFF, 1.0),
        ("e4m3", 0x7E, 448.0), ("e4m3", 0x7F, np.nan), ("e5m2", 0xFC, -np.inf),
        ("e2m3", 0x3F, -7.5), ("e2m3", 0x01, 0.125), ("e3m2", 0x1F, 28.0), ("e2m1", 0x07, 6.0),
        ("e2m1", 0xF1, 0.5), ("e3m2", 0xC1, 0.0625), ("s8", 0x80, -128), ("u8", 0x80, 128),
    ],
)  # fmt: skip
def test_codes(kind: str, code: int, value: float) -> None:
    """Containers of 8 bits hold narrower numbers in their low bits."""
    size = {"bf16": 2, "f16": 2, "tf32": 4}.get(kind, 1)
    found = values_of(np.array([code], f"u{size}"), kind)
    assert np.array_equal(found, [value], equal_nan=kind == "e4m3")
