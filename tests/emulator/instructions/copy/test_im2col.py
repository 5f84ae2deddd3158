"""Im2col copies against the list of all positions of a filter, taken one by one."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import TensorMap, UnsupportedError
from tests.emulator.instructions.copy.copies import (
    FILL,
    STORED,
    WAIT,
    clean,
    copy_kernel,
    dump,
    expect,
    first,
    kinds,
    laid_down,
    launch,
    noise,
    reported,
)
from tests.emulator.kernel import SYNC, run

SIZE = 8192
LOAD = "cp.async.bulk.tensor.{n}d.shared::cta.global.im2col.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.{n}d.global.shared::cta.im2col_no_offs.bulk_group"
REDUCE = "cp.reduce.async.bulk.tensor.{n}d.global.shared::cta.add.im2col_no_offs.bulk_group"


def positions(array, corners, steps) -> list[tuple[int, ...]]:
    """(image, D, H, W) of all positions, as far as there are these; later images are outside."""
    lower, upper = corners
    sizes = array.shape[1:-1]
    lists = [
        range(low, size - 1 + up + 1, step)
        for low, up, size, step in zip(lower, upper, sizes, steps, strict=True)
    ]
    return list(product(range(array.shape[0] + 20), *lists))


def matrix(array, corners, steps, box, at, offsets) -> np.ndarray:
    """The pixels of a copy (pixels, channels); ``at`` and ``offsets`` in the array's order."""
    pixels, channels = box
    *place, channel = at
    found = np.zeros((pixels, channels), array.dtype)
    every = positions(array, corners, steps)
    begin = every.index(tuple(place))
    for row, (image, *where) in enumerate(every[begin : begin + pixels]):
        spot = (image, *(w + o for w, o in zip(where, offsets, strict=True)))
        if all(0 <= s < n for s, n in zip(spot, array.shape, strict=False)):
            for column in range(channels):
                if 0 <= channel + column < array.shape[-1]:
                    found[row, column] = array[(*spot, channel + column)]
    return found


def load(at, offsets, size: int, opcode: str = LOAD) -> str:
    coordinates = ", ".join(map(str, reversed(at)))
    tail = ", ".join(f"%h{n}" for n in range(len(offsets)))
    moves = "".join(f"mov.u16 %h{n}, {o};" for n, o in enumerate(reversed(offsets)))
    opcode = opcode.format(n=len(at))
    copy = f"{moves} {opcode} [tile], [%d1, {{{coordinates}}}], [bar], {{{tail}}};"
    return first(expect(size) + copy) + WAIT + dump(SIZE)


@pytest.mark.parametrize(
    ("shape", "corners", "steps", "box", "at", "offsets", "span"),
    [
        # a filter of 3 by 3 with padding: from the middle of an image into the next one
        ((3, 5, 7, 64), ((-1, -1), (-1, -1)), (1, 1), (24, 32), (0, 2, 3, 16), (2, 0), 64),
        ((3, 5, 7, 64), ((-1, -1), (-1, -1)), (1, 1), (24, 64), (1, -1, -1, 0), (0, 2), 128),
        # without padding, and beyond the last image
        ((2, 5, 7, 32), ((0, 0), (-2, -2)), (1, 1), (32, 16), (1, 1, 2, 24), (1, 1), 0),
        # every second and third position
        ((2, 8, 9, 16), ((-1, 0), (-1, -2)), (2, 3), (20, 16), (0, 3, 0, 0), (1, 2), 32),
        ((4, 9, 64), ((-2,), (1,)), (2,), (16, 64), (1, 2, 0), (3,), 128),
        ((2, 3, 4, 5, 16), ((-1, 0, -1), (-1, -1, -1)), (1, 1, 2), (50, 16), (0, 1, 2, 1, 0),
         (1, 1, 0), 32),
    ],
)  # fmt: skip
def test_loads(shape, corners, steps, box, at, offsets, span: int) -> None:
    array = noise(shape)
    tensor_map = TensorMap(array, box, im2col=corners, swizzle=span, element_strides=(1, *steps, 1))
    out = np.zeros(SIZE, np.uint8)
    text = load(at, offsets, box[0] * box[1] * 2)
    clean(text, out, tensor_map, checks=False)
    assert np.array_equal(
        out, laid_down(matrix(array, corners, steps, box, at, offsets), span, size=SIZE)
    )


def test_multicast_and_nan_fill() -> None:
    """Both CTAs get the pixels; those outside are the NaN of the fill mode."""
    array = noise((1, 3, 3, 8)).astype(np.float16)
    corners = ((-1, -1), (-1, -1))
    opcode = LOAD.replace("::cta", "::cluster") + ".multicast::cluster"
    text = load((0, -1, -1, 0), (0, 0), 144, opcode)
    text = text.replace("{%h0, %h1};", "{%h0, %h1}, %h4;")
    text = text.replace("mov.u16", "mov.u16 %h4, 3; mov.u16", 1)
    rank = "mov.u32 %r30, %cluster_ctarank; setp.ne.u32 %p8, %r30, 0; not.pred %p8, %p8;"
    send = text.split("WAIT:")[0].replace(
        "@!%p8 bra LATER;", "and.pred %p8, %p8, %p7;\n@!%p8 bra LATER;"
    )
    send = send.replace(expect(144), "")
    body = f"""
        setp.eq.u32 %p7, %r21, 0; @%p7 {expect(144)} {SYNC} {rank} {send} {WAIT}
        mul.wide.u32 %d5, %r30, {SIZE}; add.s64 %d0, %d0, %d5; mov.pred %p8, %p7;
        {dump(SIZE)} {SYNC}
    """
    out = np.zeros((2, SIZE), np.uint8)
    tensor_map = TensorMap(array, (9, 8), im2col=corners, fill="nan")
    clean(body, out, tensor_map, ctas=2, checks=False)
    wanted = matrix(array, corners, (1, 1), (9, 8), (0, -1, -1, 0), (0, 0))
    outside = matrix(np.ones_like(array), corners, (1, 1), (9, 8), (0, -1, -1, 0), (0, 0)) == 0
    wanted.view(np.uint16)[outside] = 0x7FF7
    assert np.array_equal(out[0], laid_down(wanted, 0, size=SIZE))
    assert np.array_equal(out[1], out[0])


def stored(array, tensor_map, tile, at, opcode: str = STORE, **options: Any):
    coordinates = ", ".join(map(str, reversed(at)))
    copy = f"{opcode.format(n=len(at))} [%d1, {{{coordinates}}}], [tile]; {STORED}"
    return launch(FILL + first(copy, "STORED"), tile, tensor_map, **options)


@pytest.mark.parametrize(("opcode", "adds"), [(STORE, 0), (REDUCE, 1)])
def test_stores_and_reductions(opcode: str, adds: int) -> None:
    """Pixels of images that do not exist are dropped."""
    array = noise((2, 5, 7, 16), np.uint32)
    wanted = array.copy()
    corners, box, at = ((1, 0), (0, -1)), (30, 8), (1, 2, 3, 8)
    tile = noise((512,), np.uint32, 9)
    every = positions(array, corners, (1, 1))
    begin = every.index(at[:3])
    for row, (image, y, x) in enumerate(every[begin : begin + 30]):
        if image < 2:
            new = tile[row * 8 : row * 8 + 8]
            wanted[image, y, x, 8:] = adds * wanted[image, y, x, 8:] + new
    report = stored(array, TensorMap(array, box, im2col=corners), tile, at, opcode)
    assert not report.findings
    assert np.array_equal(array, wanted)


def test_what_cannot_be() -> None:
    array, tile = noise((2, 5, 7, 16), np.uint32), np.zeros(512, np.uint32)
    around = TensorMap(array, (8, 8), im2col=((-1, -1), (-1, -1)))
    assert kinds(stored(array, around, tile, (0, 0, 0, 0))) == ["tensor-map"]
    out = np.zeros(SIZE, np.uint8)
    for tensor_map, at in (
        (around, (0, 0, 6, 0)),  # outside the bounding box
        (TensorMap(array, (1, 1, 8, 8)), (0, 0, 0, 0)),  # a tiled map
    ):
        assert "tensor-map" in reported(load(at, (0, 0), 256), out, tensor_map)
    tiled = load((0, 0, 0, 0), (0, 0), 256, LOAD.replace(".im2col", "")).replace(
        ", {%h0, %h1};", ";"
    )
    assert "tensor-map" in reported(tiled, out, around)
    wide = load((0, 0, 0, 0), (0, 0), 256, LOAD.replace(".im2col", ".im2col::w"))
    with pytest.raises(UnsupportedError, match="halo"):
        launch(wide, out, around, target="sm_100a")


def test_a_store_races_with_stores_to_its_pixels_only() -> None:
    array, tile = noise((2, 5, 7, 16), np.uint32), np.zeros(512, np.uint32)
    touch = "setp.eq.u32 %p7, %r21, 1; @%p7 st.global.u32 [%d2+OFFSET], %r21;"
    for pixel, races in ((3, True), (10, True), (9, False), (20, False)):
        # one position of W: pixels 3, 10, 17, ... of an image of 5 by 7
        copy = f"{STORE.format(n=4)} [%d1, {{0, 3, 0, 0}}], [tile]; {STORED}"
        body = FILL + touch.replace("OFFSET", str(pixel * 64)) + first(copy, "STORED")
        ptx = copy_kernel(body, ("u64", "tensor_map", "u64"))
        tensor_map = TensorMap(array, (8, 16), im2col=((0, 3), (0, -3)))
        report = run(ptx, tile, tensor_map, array)
        assert ("race" in kinds(report)) == races, pixel
