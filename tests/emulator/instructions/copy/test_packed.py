"""Tensor maps over packed elements of 4 and 6 bits: what loads and stores move."""

from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import TensorMap
from tests.emulator.instructions.copy.copies import (
    FILL,
    STORED,
    WAIT,
    clean,
    dump,
    expect,
    first,
    kinds,
    launch,
    reported,
)

LOAD = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
SIZE = 2048
ROWS, ELEMENTS = 8, 256
BITS = {"16u4_align8b": 4, "16u4_align16b": 4, "16u6_align16b": 6}


def codes_and_bytes(bits: int, rows: int = ROWS, seed: int = 1):
    """Codes of elements (rows, 256), and their rows without gaps: lowest bits first."""
    codes = np.random.default_rng(seed).integers(0, 1 << bits, (rows, ELEMENTS))
    lines = []
    for row in codes:
        whole = sum(int(code) << bits * number for number, code in enumerate(row))
        lines.append(np.frombuffer(whole.to_bytes(ELEMENTS * bits // 8, "little"), np.uint8))
    return codes, np.array(lines)


def physical(address: int, span: int, atom: int) -> int:
    return address ^ ((address >> 7) & (span // atom - 1)) * atom if span else address


def codes_in_shared(tile, packed: str, row: int, span: int, atom: int) -> list[int]:
    """The codes of a line of 128 elements in shared memory; those of padding are left out."""
    bits = BITS[packed]
    padded = packed.endswith("16b")
    found = []
    for element in range(128):
        group, place = divmod(element, 16)
        bit = group * (128 if padded else 64) + place * bits
        line = row * (128 if padded else span or 64)
        code = 0
        for number in range(bits):
            byte = physical(line + (bit + number) // 8, span, atom)
            code |= (int(tile[byte]) >> (bit + number) % 8 & 1) << number
        found.append(code)
    return found


def load(at: str, moved: int) -> str:
    return first(expect(moved) + f"{LOAD} [tile], [%d1, {{{at}}}], [bar];") + WAIT + dump(SIZE)


@pytest.mark.parametrize(
    ("packed", "span", "atom"),
    [
        ("16u4_align8b", 0, 16), ("16u4_align8b", 64, 16), ("16u4_align8b", 128, 16),
        ("16u4_align16b", 0, 16), ("16u4_align16b", 128, 16), ("16u4_align16b", 128, 32),
        ("16u6_align16b", 0, 16), ("16u6_align16b", 128, 16),
    ],
)  # fmt: skip
@pytest.mark.parametrize("at", [(0, 0), (128, 3), (128, 6), (0, -2), (256, 0)])
def test_loads(packed: str, span: int, atom: int, at: tuple[int, int]) -> None:
    """The mbarrier counts bytes of global memory; what is outside the tensor is zero."""
    bits = BITS[packed]
    codes, rows = codes_and_bytes(bits)
    out = np.zeros(SIZE, np.uint8)
    tensor_map = TensorMap(rows, (4, 128), packed=packed, swizzle=span, atom=atom)
    clean(load(f"{at[0]}, {at[1]}", 4 * 16 * bits), out, tensor_map, target="sm_100a", checks=False)
    for line in range(4):
        row = at[1] + line
        inside = 0 <= row < ROWS and at[0] < ELEMENTS
        wanted = codes[row, at[0] : at[0] + 128].tolist() if inside else [0] * 128
        assert codes_in_shared(out, packed, line, span, atom) == wanted


def test_the_bytes_of_a_load_are_those_of_shared_memory_for_races() -> None:
    """A thread that writes a padding byte meanwhile races with the load."""
    _, rows = codes_and_bytes(4)
    body = first(expect(256) + f"{LOAD} [tile], [%d1, {{0, 0}}], [bar];")
    touch = "mov.u32 %r22, 1; setp.eq.u32 %p7, %r21, 1; @%p7 st.shared.u8 [tile+OFFSET], %r22;"
    for offset, races in ((15, True), (511, True), (512, False)):
        text = body + touch.replace("OFFSET", str(offset)) + WAIT
        tensor_map = TensorMap(rows, (4, 128), packed="16u4_align16b")
        found = reported(text, np.zeros(16), tensor_map, target="sm_100a")
        assert ("race" in found) == races


def stored(packed: str, at: str, tile, *, span: int = 128, opcode: str = STORE):
    """The array after a store of 4 by 128 elements, and the report."""
    rows = np.zeros((ROWS, ELEMENTS * BITS[packed] // 8), np.uint8)
    body = FILL + first(f"{opcode} [%d1, {{{at}}}], [tile];" + STORED, "STORED")
    tensor_map = TensorMap(rows, (4, 128), packed=packed, swizzle=span)
    return rows, launch(body, tile, tensor_map, target="sm_100a")


def test_stores_of_six_bits_take_each_from_a_byte() -> None:
    """The two high bits of the byte are dropped."""
    tile = np.random.default_rng(4).integers(0, 256, SIZE, np.uint8)
    rows, report = stored("16u6_align16b", "128, 2", tile)
    assert not report.findings
    codes = np.zeros((ROWS, ELEMENTS), np.int64)
    for line in range(4):
        for element in range(128):
            codes[2 + line, 128 + element] = tile[physical(128 * line + element, 128, 16)] & 63
    for row, line in enumerate(codes):
        whole = sum(int(code) << 6 * number for number, code in enumerate(line))
        assert bytes(rows[row]) == whole.to_bytes(192, "little")


def test_stores_without_padding() -> None:
    tile = np.random.default_rng(4).integers(0, 256, SIZE, np.uint8)
    rows, report = stored("16u4_align8b", "128, 2", tile, span=0)
    assert not report.findings
    wanted = np.zeros_like(rows)
    wanted[2:6, 64:] = tile[:256].reshape(4, 64)
    assert np.array_equal(rows, wanted)


def test_what_the_hardware_does_not_take() -> None:
    tile = np.zeros(SIZE, np.uint8)
    reduce = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group"
    for packed, at, opcode in (
        ("16u4_align16b", "0, 0", STORE),  # loads only
        ("16u6_align16b", "64, 0", STORE),
        ("16u4_align8b", "16, 0", STORE),
        ("16u4_align8b", "0, 0", reduce),
    ):
        _, report = stored(packed, at, tile, opcode=opcode)
        assert kinds(report) == ["illegal-instruction"], (packed, at)
    _, rows = codes_and_bytes(4)
    for packed in ("16u4_align8b", "16u4_align16b"):
        tensor_map = TensorMap(rows, (4, 128), packed=packed)
        assert "tensor-map" in reported(load("0, 0", 256), tile, tensor_map)
