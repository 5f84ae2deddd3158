"""Matrix fragments: what each lane holds, by the formulas of the PTX documentation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Report
from tests.emulator.kernel import kernel, run, vector

_HEAD = """
    mov.u32 %r300, %tid.x; mul.wide.u32 %d50, %r300, 4;
    add.u64 %d51, %d0, %d50; add.u64 %d52, %d1, %d50;
"""


def launch(body: str, source: Any, out: Any, block: int = 64, **options: Any) -> Report:
    text = kernel(
        _HEAD + body, ("u64", "u64"), shared=options.pop("shared", 0),
        target=options.pop("target", "sm_90a"),
    )  # fmt: skip
    return run(text, source, out, block=block, **options)


# Two warps; rows of 16 bytes at places that a permutation scatters over shared memory.
_FILL = """
    mov.u32 %r280, %r300;
FILL:
    mul.wide.u32 %d53, %r280, 4; add.u64 %d53, %d0, %d53; ld.global.b32 %r281, [%d53];
    mad.lo.u32 %r282, %r280, 4, tile; st.shared.b32 [%r282], %r281;
    add.u32 %r280, %r280, 64; setp.lt.u32 %p1, %r280, 256; @%p1 bra FILL;
    bar.sync 0;
    mul.lo.u32 %r290, %r300, 37; and.b32 %r290, %r290, 63; mad.lo.u32 %r290, %r290, 16, tile;
"""


def matrices(table: np.ndarray, count: int) -> np.ndarray:
    """The matrices (warp, matrix, 8, 8) whose rows lanes 8 j + r point at."""
    lanes = np.arange(64).reshape(2, 32)[:, : 8 * count]
    return table.reshape(64, 8)[lanes * 37 % 64].reshape(2, count, 8, 8)


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix(count: int, transposed: bool, generic: bool) -> None:
    table = np.random.default_rng(count).integers(0, 1 << 16, 512, np.uint16)
    out = np.zeros((count, 64), np.uint32)
    trans = ".trans" if transposed else ""
    space, address = ("", "%d54") if generic else (".shared", "%r290")
    stores = "".join(f"st.global.b32 [%d52+{256 * n}], %r{n};" for n in range(count))
    body = f"""{_FILL} cvt.u64.u32 %d54, %r290; cvta.shared.u64 %d54, %d54;
    ldmatrix.sync.aligned.m8n8.x{count}{trans}{space}.b16 {vector(0, count)}, [{address}];
    {stores}"""
    report = launch(body, table.view(np.uint32), out, shared=1024)
    assert report.verdict.value == "clean", report
    held = out.view(np.uint16).reshape(count, 2, 32, 2)
    for warp, group in enumerate(matrices(table, count)):
        for index, matrix in enumerate(group):
            for lane in range(32):
                row, column = lane // 4, 2 * (lane % 4)
                pair = (
                    matrix[column : column + 2, row]
                    if transposed
                    else (matrix[row, column : column + 2])
                )
                np.testing.assert_array_equal(held[index, warp, lane], pair)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix_undoes_ldmatrix(count: int, transposed: bool) -> None:
    """Through the same addresses 1 KiB further, the rows are where they were."""
    table = np.random.default_rng(count).integers(0, 1 << 32, 256, np.uint32)
    out = np.zeros(256, np.uint32)
    trans = ".trans" if transposed else ""
    body = f"""{_FILL}
    ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {vector(0, count)}, [%r290];
    mad.lo.u32 %r291, %r300, 16, tile;
    st.shared.v4.b32 [%r291+1024], {{0, 0, 0, 0}}; bar.sync 0;
    stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r290+1024], {vector(0, count)};
    bar.sync 0; ld.shared.v4.b32 {vector(8, 4)}, [%r291+1024];
    mul.wide.u32 %d53, %r300, 16; add.u64 %d53, %d1, %d53;
    st.global.v4.b32 [%d53], {vector(8, 4)};"""
    report = launch(body, table, out, shared=2048)
    assert report.verdict.value == "clean", report
    lanes = np.arange(64).reshape(2, 32)[:, : 8 * count].reshape(-1)
    wanted = np.zeros((64, 4), np.uint32)
    wanted[lanes * 37 % 64] = table.reshape(64, 4)[lanes * 37 % 64]
    np.testing.assert_array_equal(out.reshape(64, 4), wanted)


def test_movmatrix() -> None:
    table = np.random.default_rng(9).integers(0, 1 << 16, (2, 8, 8), np.uint16)
    out = np.zeros_like(table)
    body = """ld.global.b32 %r1, [%d51]; movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;
    st.global.b32 [%d52], %r2;"""
    assert launch(body, table, out).verdict.value == "clean"
    np.testing.assert_array_equal(out, table.swapaxes(1, 2))


@pytest.mark.parametrize(
    ("address", "kind"), [("%r290+8", "misaligned"), ("%r290+1024", "out-of-bounds")]
)
def test_bad_rows(address: str, kind: str) -> None:
    body = f"{_FILL} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r1}}, [{address}];"
    report = launch(body, np.zeros(256, np.uint32), np.zeros(1), shared=1024)
    assert [finding.kind for finding in report.findings] == [kind]


def test_part_of_a_warp() -> None:
    body = "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;"
    report = launch(body, np.zeros(1), np.zeros(1), block=48)
    assert [finding.kind for finding in report.findings] == ["partial-warp"]
