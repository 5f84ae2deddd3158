"""Clusters: addresses of other CTAs; dependent grids.

PTX ISA: "mapa", "getctarank", "griddepcontrol".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.memory import OFFSET_MASK, RANK_SHIFT, SHARED_WINDOW, WINDOW_BYTES
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

_NOBODY: Final = 255  # a rank that no cluster has, and the largest that an address can hold


def _width(i: Instruction, e: Emitter) -> tuple[bool, str]:
    """Whether addresses are generic, and their type."""
    words = i.modifiers
    if words in (("u32",), ("u64",)):
        return True, words[0]
    if words in (("shared::cluster", "u32"), ("shared::cluster", "u64")):
        return False, words[1]
    raise e.refuse("modifiers")


def _shared_row(
    wg: Warpgroup, mask: Mask, site: Instruction, addresses: Any, generic: bool
) -> np.ndarray[Any, Any]:
    """Shared addresses (uint64, a row or a scalar) from addresses that may be generic."""
    row = np.asarray(addresses, np.uint64)
    if not generic:
        return row & np.uint64(WINDOW_BYTES - 1)
    taken = row if mask is None or not row.ndim else row[mask]
    low, high = int(taken.min()), int(taken.max())
    if low < SHARED_WINDOW or high >= SHARED_WINDOW + WINDOW_BYTES:
        bad = low if low < SHARED_WINDOW else high
        wg.machine.fault(
            "out-of-bounds", f"generic address {bad:#x} is not in shared memory", site, wg, mask
        )
    return row - np.uint64(SHARED_WINDOW)


def _map_address(i: Instruction, e: Emitter) -> None:
    """``mapa``: the same place in the CTA of another rank."""
    generic, kind = _width(i, e)
    if len(i.operands) != 3:
        raise e.refuse("three operands were expected")
    if generic and kind == "u32":
        raise e.refuse("generic addresses have 64 bits")
    write = e.writer(i.operands[0], kind)
    source, rank = e.reader(i.operands[1], kind), e.reader(i.operands[2], "u32")
    window = np.uint64(SHARED_WINDOW if generic else 0)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        offsets = _shared_row(wg, mask, i, source(wg), generic) & np.uint64(OFFSET_MASK)
        # A rank that the cluster lacks is legal until something is accessed there: kernels map an
        # address for every lane, to its own number, and let only the first lanes use it.
        ranks = np.minimum(np.asarray(rank(wg), np.uint64), np.uint64(_NOBODY))
        result = offsets + (ranks << np.uint64(RANK_SHIFT)) + window
        write(wg, result.astype(np.uint32 if kind == "u32" else np.uint64), mask)

    e.call(handler)


def _rank(i: Instruction, e: Emitter) -> None:
    """``getctarank``: the rank of the CTA that owns a shared address."""
    generic, kind = _width(i, e)
    if len(i.operands) != 2 or (generic and kind == "u32"):
        raise e.refuse("operands")
    write, source = e.writer(i.operands[0], "u32"), e.reader(i.operands[1], kind)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        row = _shared_row(wg, mask, i, source(wg), generic)
        write(wg, (row >> np.uint64(RANK_SHIFT)).astype(np.uint32), mask)

    e.call(handler)


def _dependent_grids(i: Instruction, e: Emitter) -> None:
    """``griddepcontrol``: writes of the previous grid are the checks' business."""
    if i.modifiers not in (("wait",), ("launch_dependents",)) or i.operands:
        raise e.refuse("modifiers")
    if i.modifiers == ("wait",):
        e.call(lambda wg, mask: wg.machine.observer.grid_waited(wg, mask))


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "mapa": _map_address,
    "getctarank": _rank,
    "griddepcontrol": _dependent_grids,
}
