from __future__ import annotations

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from tests.emulator.instructions.tcgen05.kernels import fill, kinds, launch, program, wait
from tests.emulator.instructions.tcgen05.products import (
    COMMIT,
    SYNC,
    TILE,
    before,
    by_thread_0,
    read_back,
)
from tests.emulator.instructions.tcgen05.tiles import descriptor, place

# shape -> (rows, 32-bit columns, row that each lane of tensor memory gets)
SHAPES = {
    "128x256b": (128, 8, lambda lane: lane),
    "128x128b": (128, 4, lambda lane: lane),
    "64x128b.warpx2::02_13": (64, 4, lambda lane: lane % 64),
    "64x128b.warpx2::01_23": (64, 4, lambda lane: lane // 64 * 32 + lane % 32),
    "32x128b.warpx4": (32, 4, lambda lane: lane % 32),
    "4x256b": (4, 8, lambda lane: lane % 32 - 28 if lane % 32 >= 28 else None),
}


def copy(shape: str, source: int, taddr: str = "%r23") -> str:
    return by_thread_0(
        TILE.replace("%r21", "%r22")
        + f"add.u32 %r23, %r9, 2; add.s64 %d7, %d6, {source};"
        + f"tcgen05.cp.cta_group::1.{shape} [{taddr}], %d7;"
        + COMMIT
    )


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("span", [0, 32, 128])
def test_rows_of_shared_memory_come_to_lanes(shape: str, span: int) -> None:
    rows, columns, row_of = SHAPES[shape]
    values = np.random.default_rng(3).integers(0, 256, (max(rows, 8), columns * 4), np.uint8)
    data = np.zeros(16384, np.uint8)
    leading, stride = (0, 8 * span) if span else (2048, 128)
    place(values, data, 0, k_major=True, leading=leading, stride=stride, span=span)
    cells = np.zeros((128, 16), np.uint32)
    body = fill(16) + SYNC + copy(shape, descriptor(0, leading, stride, span)) + wait()
    report = launch(program(body + read_back(16), size=len(data)), data, cells)
    assert report.verdict is Verdict.CLEAN, str(report)
    wanted = before(16)
    for lane in range(128):
        if row_of(lane) is not None:
            wanted[lane, 2 : 2 + columns] = values[row_of(lane)].view(np.uint32)
    assert (cells == wanted).all()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (copy("128x256b", descriptor(0, 0, 1024, 128) & ~(1 << 46)), "descriptor"),
        (copy("128x256b", descriptor(15360, 0, 1024, 128)), "out-of-bounds"),
        (copy("128x256b", descriptor(0, 0, 1024, 128), "%r23+127"), "tensor-memory"),
        (copy("128x256b", descriptor(0, 0, 1024, 128), "%r10+0x10000"), "tensor-memory"),
    ],
)
def test_copies_that_go_wrong(text: str, kind: str) -> None:
    report = launch(program(text + wait(), size=16384), np.zeros(16384, np.uint8), np.zeros(1))
    assert kind in kinds(report)
