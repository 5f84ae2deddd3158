"""Tensor maps made on the device (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from fa4gen.emulator.instructions.copy.endpoints import check_global, check_shared, only, pick
from fa4gen.emulator.ptx.syntax import Immediate, Instruction
from fa4gen.emulator.state.machine import Warpgroup
from fa4gen.emulator.state.map_bits import ARRAY_FIELDS, FIELDS, MAP_BYTES, MAX_RANK, replace
from fa4gen.emulator.state.memory import GLOBAL_BASE, SHARED_WINDOW, WINDOW_BYTES
from fa4gen.emulator.state.registers import WARP_LANES, Mask
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

_MAP_ALIGN: Final = 128  # of a map that tensormap.replace or cp_fenceproxy touches
_WIDE_FIELDS: Final = ("global_address", "global_stride")
_CONSTANT_FIELDS: Final = (
    "elemtype",
    "interleave_layout",
    "swizzle_mode",
    "swizzle_atomicity",
    "fill_mode",
)


def _map_shared(
    wg: Warpgroup, lane: int, site: Instruction, address: int, space: str
) -> int | None:
    """The shared address if the map is in shared memory, else None."""
    if space == "shared::cta":
        return address
    if space == "generic" and SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
        return address - SHARED_WINDOW
    return None


def _replace(i: Instruction, e: Emitter) -> None:
    words = list(i.modifiers)
    if words[:2] != ["replace", "tile"] or words[2] not in FIELDS:
        raise e.refuse("modifiers")
    field = words[2]
    rest = words[3:]
    space = rest.pop(0) if rest[0] in ("global", "shared::cta") else "generic"
    wide = "b64" if field in _WIDE_FIELDS else "b32"
    if rest != ["b1024", wide]:
        raise e.refuse("modifiers")
    indexed = field in ARRAY_FIELDS
    if len(i.operands) != 2 + indexed:
        raise e.refuse(f"{len(i.operands)} operands")
    axis = 0
    if indexed:
        ordinal = i.operands[1]
        most = MAX_RANK - (field == "global_stride")
        if not isinstance(ordinal, Immediate) or not 0 <= ordinal.bits < most:
            raise e.refuse(f"the ordinal is a constant below {most}")
        axis = ordinal.bits
    if field in _CONSTANT_FIELDS and not isinstance(i.operands[-1], Immediate):
        raise e.refuse(f"{field} takes a constant")
    address = e.address(i.operands[0], shared=space == "shared::cta")
    value = e.reader(i.operands[-1], wide)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        addresses, values = address(wg), value(wg)
        for lane in wg.lanes_of(mask).tolist():
            at = pick(addresses, lane)
            new = pick(values, lane)
            shared = _map_shared(wg, lane, i, at, space)
            if shared is None:
                _check_aligned(wg, lane, i, at)
                check_global(wg, lane, i, at, at + MAP_BYTES, writes=True)
                begin = at - GLOBAL_BASE
                words = machine.memory.data[begin : begin + MAP_BYTES].view(np.uint32)
                replace(words, field, axis, new)
                if machine.observer.enabled:
                    machine.observer.global_access(
                        wg, only(wg, lane), np.array([at]), MAP_BYTES, "write", i
                    )
                    machine.observer.map_changed(wg, only(wg, lane), at, False, i)
                continue
            cta, offset = machine.shared_at(wg, shared, i, False)
            check_shared(wg, lane, i, cta, offset, MAP_BYTES, _MAP_ALIGN)
            words = cta.shared.data[offset : offset + MAP_BYTES].view(np.uint32)
            replace(words, field, axis, new)
            if machine.observer.enabled:
                machine.observer.shared_access(
                    wg, only(wg, lane), cta, np.array([offset]), MAP_BYTES, "write", i
                )
        machine.progress()

    e.call(handler)


def _check_aligned(wg: Warpgroup, lane: int, site: Instruction, address: int) -> None:
    if address % _MAP_ALIGN:
        wg.machine.fault(
            "misaligned",
            f"the tensor map at {wg.machine.memory.describe(address)} is not"
            f" {_MAP_ALIGN}-byte aligned",
            site,
            wg,
            only(wg, lane),
        )


def _publish(i: Instruction, e: Emitter) -> None:
    """``tensormap.cp_fenceproxy``: copy 128 bytes and release them to the tensormap proxy."""
    words = i.modifiers
    scopes = ("cta", "cluster", "gpu", "sys")
    expected = ("cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release")
    if words[:5] != expected or words[5] not in scopes or words[6:] != ("sync", "aligned"):
        raise e.refuse("modifiers")
    if len(i.operands) != 3:
        raise e.refuse("three operands were expected")
    size = i.operands[2]
    if not isinstance(size, Immediate) or size.bits != MAP_BYTES:
        raise e.refuse(f"the size is {MAP_BYTES}")
    goal: Reader = e.address(i.operands[0])
    origin: Reader = e.address(i.operands[1], shared=True)

    def copy(wg: Warpgroup, lane: int, at: int, source: int) -> None:
        machine = wg.machine
        cta, offset = machine.shared_at(wg, source, i, False)
        check_shared(wg, lane, i, cta, offset, MAP_BYTES, _MAP_ALIGN)
        _check_aligned(wg, lane, i, at)
        check_global(wg, lane, i, at, at + MAP_BYTES, writes=True)
        begin = at - GLOBAL_BASE
        machine.memory.data[begin : begin + MAP_BYTES] = cta.shared.data[
            offset : offset + MAP_BYTES
        ]
        if machine.observer.enabled:
            one = only(wg, lane)
            machine.observer.shared_access(wg, one, cta, np.array([offset]), MAP_BYTES, "read", i)
            machine.observer.global_access(wg, one, np.array([at]), MAP_BYTES, "write", i)
            machine.observer.map_changed(wg, one, at, True, i)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        goals, origins = goal(wg), origin(wg)
        done: set[tuple[int, int, int]] = set()
        for lane in wg.lanes_of(mask).tolist():
            one = (lane // WARP_LANES, pick(goals, lane), pick(origins, lane))
            if one not in done:
                done.add(one)
                copy(wg, lane, one[1], one[2])
        if len(done) > len({warp for warp, _, _ in done}):
            machine.find(
                "illegal-instruction",
                "the lanes of a warp name different tensor maps",
                i,
                wg,
                mask,
            )
        if machine.observer.enabled:
            machine.observer.fence(wg, mask, i.text, i)
        machine.progress()

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "tensormap.replace": _replace,
    "tensormap.cp_fenceproxy": _publish,
}
