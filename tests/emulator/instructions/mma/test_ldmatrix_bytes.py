"""ldmatrix and stmatrix of 8-bit, 6-bit and 4-bit elements, element by element."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.kernel import clean, launch, reported, vector

SIZE = 1024
# two warps; %r2 a row of 16 bytes for each lane, anywhere in the warp's half of the tile
BODY = """
    mov.u32 %r0, %tid.x; mov.u32 %r1, tile; shl.b32 %r3, %r0, 4; cvt.u64.u32 %d4, %r3;
    add.u64 %d5, %d0, %d4; ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%d5];
    add.u32 %r8, %r1, %r3; st.shared.v4.b32 [%r8], {{%r4, %r5, %r6, %r7}};
    mul.wide.u32 %d6, %r0, 4; add.u64 %d7, %d1, %d6; ld.global.b32 %r2, [%d7];
    add.u32 %r2, %r2, %r1; add.u64 %d8, %d2, %d6;
    {more}
    bar.sync 0;
    {text}
    bar.sync 0;
    {after}
"""


def places(rng) -> np.ndarray:
    """The row, of 32 in its warp's half, that each lane names."""
    return np.concatenate([rng.permutation(32), rng.permutation(32) + 32])


def loaded(opcode: str, registers: int, tile: np.ndarray, rows: np.ndarray) -> np.ndarray:
    after = "".join(f"st.global.b32 [%d8+{256 * n}], %r{20 + n};" for n in range(registers))
    text = BODY.format(more="", text=f"{opcode} {vector(20, registers)}, [%r2];", after=after)
    out = np.zeros((registers, 64), np.uint32)
    given = (rows * 16).astype(np.uint32)
    clean(text, tile, given, out, target="sm_100a", shared=SIZE, block=64)
    return out


def elements(row: np.ndarray, bits: int) -> list[int]:
    whole = int.from_bytes(row.tobytes(), "little")
    return [whole >> bits * n & (1 << bits) - 1 for n in range(16)]


FORMATS = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("form", FORMATS)
def test_sixteen_by_sixteen_transposed(form: str, count: int) -> None:
    rng = np.random.default_rng(count)
    tile, rows = rng.integers(0, 256, (64, 16), np.uint8), places(rng)
    opcode = f"ldmatrix.sync.aligned.m16n16.x{count}.trans.shared.{form}"
    out = loaded(opcode, 2 * count, tile, rows)
    for lane in range(64):
        warp, group, part = lane // 32, lane % 32 // 4, lane % 4
        for register in range(2 * count):
            first = warp * 32 + register // 2 * 16 + 4 * part
            column = group + 8 * (register % 2)
            wanted = [elements(tile[rows[first + n]], FORMATS[form])[column] for n in range(4)]
            assert out[register, lane].tobytes() == bytes(wanted)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("form", [form for form in FORMATS if form != "b8"])
def test_eight_by_sixteen(form: str, count: int) -> None:
    rng = np.random.default_rng(count)
    tile, rows = rng.integers(0, 256, (64, 16), np.uint8), places(rng)
    out = loaded(f"ldmatrix.sync.aligned.m8n16.x{count}.shared::cta.{form}", count, tile, rows)
    for lane in range(64):
        warp, group, part = lane // 32, lane % 32 // 4, lane % 4
        for register in range(count):
            row = tile[rows[warp * 32 + register * 8 + group]]
            wanted = elements(row, FORMATS[form])[4 * part : 4 * part + 4]
            assert out[register, lane].tobytes() == bytes(wanted)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stores_of_sixteen_by_eight(count: int) -> None:
    """As accumulators of mma hold it: rows g and g + 8, columns 2 t and 2 t + 1."""
    rng = np.random.default_rng(count)
    tile, rows = np.zeros((64, 16), np.uint8), places(rng)
    values = rng.integers(0, 1 << 32, (count, 64), np.uint32)
    more = "".join(f"ld.global.b32 %r{20 + n}, [%d8+{256 * n}];" for n in range(count))
    opcode = f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8"
    after = """ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r8];
    st.global.v4.b32 [%d5], {%r4, %r5, %r6, %r7};"""
    text = BODY.format(more=more, text=f"{opcode} [%r2], {vector(20, count)};", after=after)
    clean(
        text, tile, (rows * 16).astype(np.uint32), values, target="sm_100a", shared=SIZE, block=64
    )
    wanted = np.zeros_like(tile)
    for lane in range(64):
        warp, group, part = lane // 32, lane % 32 // 4, lane % 4
        for register in range(count):
            for number, byte in enumerate(values[register, lane].tobytes()):
                row = warp * 32 + register * 8 + 2 * part + number % 2
                wanted[rows[row], group + 8 * (number // 2)] = byte
    np.testing.assert_array_equal(tile, wanted)


def test_before_blackwell() -> None:
    text = "mov.u32 %r2, tile; ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r3, %r4}, [%r2];"
    report = launch(text, shared=SIZE)
    assert "illegal-instruction" in [finding.kind for finding in report.findings]


@pytest.mark.parametrize(("form", "data"), [("b6x16_p32", 12), ("b4x16_p64", 8)])
def test_padding_need_not_be_written(form: str, data: int) -> None:
    for written, wanted in ((data, []), (data - 4, ["uninitialised"])):
        stores = "".join(f"st.shared.b32 [%r3+{n}], %r0;" for n in range(0, written, 4))
        text = f"""mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r3, %r0, 16, %r1; {stores}
        bar.sync 0;
        ldmatrix.sync.aligned.m8n16.x4.shared.b8x16.{form} {{%r4,%r5,%r6,%r7}}, [%r3];"""
        assert reported(text, target="sm_100a", shared=SIZE) == wanted
