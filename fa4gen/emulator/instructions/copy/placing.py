"""The place of the box, the rows or the pixels of a tensor copy, by its map and coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from fa4gen.emulator.instructions.copy.boxes import Box, place_box
from fa4gen.emulator.instructions.copy.endpoints import check_global, only
from fa4gen.emulator.instructions.copy.im2col import Pixels, place_pixels
from fa4gen.emulator.instructions.copy.map_operands import read_map
from fa4gen.emulator.instructions.copy.tensor_forms import Form
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.async_ops import GlobalRange
from fa4gen.emulator.state.decoded_map import PADDED_BOX, DecodedMap
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.map_bits import MapError

Part: TypeAlias = Box | Pixels
"""The unit of a copy."""


def place(
    wg: Warpgroup,
    lane: int,
    site: Instruction,
    form: Form,
    address: int,
    at: Sequence[int],
    *,
    writes: bool,
) -> tuple[DecodedMap, Sequence[Part]]:
    """Read the map and place the box, the rows or the pixels; stop at impossible ones.

    ``at`` are coordinates, and im2col offsets after them.
    """
    machine = wg.machine
    m = read_map(wg, lane, site, address)
    if m.rank != form.rank:
        machine.fault(
            "tensor-map",
            f"a copy in {form.rank} dimensions with a map of {m.rank}",
            site, wg, only(wg, lane),
        )  # fmt: skip
    if form.pixels != (m.corners is not None):
        machine.fault(
            "tensor-map",
            "a tiled copy with an im2col map" if m.corners else "an im2col copy with a tiled map",
            site, wg, only(wg, lane),
        )  # fmt: skip
    at = [_first_element(wg, lane, site, m, at[0]), *at[1:]]
    if writes and min(at) < 0:
        machine.fault(
            "illegal-instruction",
            f"a store to negative coordinates {tuple(at)}",
            site, wg, only(wg, lane),
        )  # fmt: skip
    boxes: Sequence[Part]
    if form.pixels:
        try:
            boxes = [place_pixels(m, at[: m.rank], at[m.rank :], chunked=writes)]
        except MapError as error:
            machine.fault("tensor-map", str(error), site, wg, only(wg, lane))
    elif form.rows:
        _check_rows(wg, lane, site, m)
        boxes = [place_box(m, (at[0], row), chunked=writes) for row in at[1:]]
    else:
        boxes = [place_box(m, at, chunked=writes)]
    for box in boxes:
        if not box.empty:
            check_global(wg, lane, site, box.address, box.end, writes=writes)
    return m, boxes


def _first_element(wg: Warpgroup, lane: int, site: Instruction, m: DecodedMap, at: int) -> int:
    """Check the coordinate of dimension 0; of packed types it becomes bytes."""
    kind = m.element
    begin = at * kind.bits // 8
    message = ""
    if kind.padded and at % PADDED_BOX:
        message = f"coordinate {at} of dimension 0 is no multiple of {PADDED_BOX} elements"
    elif at * kind.bits % 128:
        message = f"coordinate {at} of dimension 0 is {begin} bytes, no multiple of 16"
    if message:
        wg.machine.fault("illegal-instruction", message, site, wg, only(wg, lane))
    return begin if kind.packed else at


def _check_rows(wg: Warpgroup, lane: int, site: Instruction, m: DecodedMap) -> None:
    if wg.machine.sm < 100:
        wg.machine.fault(
            "illegal-instruction",
            "gather4 and scatter4 do not exist before sm_100",
            site,
            wg,
            only(wg, lane),
        )
    if m.counts[1] != 1:
        wg.machine.fault(
            "tensor-map",
            f"rows with a box of {m.counts[1]} rows; it has to have one",
            site,
            wg,
            only(wg, lane),
        )


def global_ranges(boxes: Sequence[Part]) -> tuple[GlobalRange, ...]:
    """Hulls of the parts inside the tensor."""
    return tuple(GlobalRange(box.address, box.end, box.rows()) for box in boxes if not box.empty)


def sizes(m: DecodedMap, boxes: Sequence[Part]) -> tuple[int, int, int]:
    """Bytes moved, bytes of shared memory from end to end and its 16-byte chunks, of all boxes."""
    lines = len(boxes) * int(np.prod(m.counts[1:], dtype=np.int64))
    return lines * m.moved_bytes, lines * m.pitch, lines * m.inner_bytes // 16
