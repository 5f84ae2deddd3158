"""Handing out columns of tensor memory (PTX ISA, "tcgen05.alloc" and its relatives).

With ``.cta_group::2`` an allocation waits until the peer has come to its own of the same number, as
FlashAttention-4 and CUTLASS expect, whose pairs have no barrier between there and their first
product; but it orders nothing else. The check is that both CTAs of a pair request the same sizes in
the same order, and that neither frees columns before the other has allocated its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fa4gen.emulator.instructions.copy.endpoints import check_shared
from fa4gen.emulator.instructions.tcgen05.common import (
    check_words,
    cta_group,
    memory_of,
    per_warp,
    rectangle,
    use_group,
    warp_mask,
    whole_warps,
)
from fa4gen.emulator.ptx.syntax import Immediate, Instruction
from fa4gen.emulator.state.lanes import Lanes
from fa4gen.emulator.state.machine import Cta, Warpgroup
from fa4gen.emulator.state.memory import SHARED_WINDOW, WINDOW_BYTES
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.state.tensor_memory import (
    COLUMNS,
    LANES,
    UNIT,
    Allocation,
    TensorMemory,
    split_address,
)
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.outcome import Outcome, Wait, Waiting

_COMMON: Final = {"cta_group::1", "cta_group::2", "sync", "aligned", "b32"}


def _check_count(i: Instruction, e: Emitter) -> None:
    if len(i.operands) != 2:
        raise e.refuse("an address and a number of columns were expected")
    columns = i.operands[1]
    if isinstance(columns, Immediate) and not _possible(columns.bits):
        raise e.refuse(f"{columns.bits} columns; 32, 64, 128, 256 or 512")


def _possible(columns: int) -> bool:
    return UNIT <= columns <= COLUMNS and columns & (columns - 1) == 0


def make_alloc(i: Instruction, e: Emitter) -> Waiting:
    """``tcgen05.alloc``: waits until the columns are free; their address goes to shared memory."""
    check_words(i, e, {"alloc", "shared::cta", *_COMMON})
    _check_count(i, e)
    group = cta_group(i, e)
    generic = "shared::cta" not in i.modifiers
    goal = e.address(i.operands[0], shared=not generic)
    count = e.reader(i.operands[1], "u32")

    def place(wg: Warpgroup, mask: Mask, address: int) -> int:
        machine = wg.machine
        if generic:
            if not SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
                machine.fault(
                    "out-of-bounds",
                    f"generic address {address:#x} is not in shared memory",
                    i, wg, mask,
                )  # fmt: skip
            address -= SHARED_WINDOW
        cta, offset = machine.shared_at(wg, address, i, False)
        lane = wg.first_lane(mask)
        check_shared(wg, lane, i, cta, offset, 4, 4)
        return offset

    def grant(wg: Warpgroup, mask: Mask, one: Allocation, offset: int) -> None:
        cta, machine = wg.cta, wg.machine
        cta.shared.words[offset // 4] = one.first
        if machine.observer.enabled:
            lane = np.zeros(wg.lanes, np.bool_)
            lane[wg.first_lane(mask)] = True
            at = np.array([offset], np.int64)
            machine.observer.shared_access(wg, lane, cta, at, 4, "write", i)
            machine.observer.tensor_allocated(cta, one.first, one.columns)
        machine.progress()

    def end(wg: Warpgroup, lanes: Lanes, timed_out: bool) -> Outcome:
        mask = lanes.mask
        memory = memory_of(wg, mask, i)
        ctas = use_group(wg, mask, i, group)
        warps = whole_warps(wg, mask, i)
        goals = per_warp(wg, mask, warps, goal(wg), i, "the address")
        counts = per_warp(wg, mask, warps, count(wg), i, "the number of columns")
        waits: list[Wait] = []
        done = lanes.array(wg).copy()
        for warp, address, columns in zip(warps, goals, counts, strict=True):
            part = mask if len(warps) == 1 else warp_mask(wg, warp)
            offset = place(wg, part, address)
            _check_request(wg, part, i, memory, columns)
            one = memory.waiting.pop(warp, None)
            if one is None:
                one = memory.try_allocate(columns, wg, part, i)
                if one is not None and len(ctas) > 1:
                    _check_pair(wg, part, i, ctas, one)
                    if wg.machine.observer.enabled:
                        wg.machine.observer.pair_allocated(wg, part, one.number)
                    wg.machine.scheduler.wake(_key(wg.cta))
            peer = None if one is None else _missing_peer(wg.cta, ctas, one)
            if one is not None and peer is not None:
                memory.waiting[warp] = one
                lacking = Lanes(warp_mask(wg, warp))
                done[lacking.mask] = False
                waits.append(_wait_for_peer(lacking, peer))
                continue
            if one is None:
                done[warp_mask(wg, warp)] = False
                waits.append(_wait(wg, Lanes(warp_mask(wg, warp)), columns, memory))
                continue
            grant(wg, part, one, offset)
        if not waits:
            return Outcome(lanes)
        return Outcome(Lanes.of(done) if done.any() else None, waits)

    return end


def _missing_peer(cta: Cta, ctas: tuple[Cta, ...], one: Allocation) -> Cta | None:
    """The CTA of the pair that has yet to come to its allocation of the same number."""
    for peer in ctas:
        memory = peer.tensor_memory
        if peer is not cta and (memory is None or len(memory.sizes) <= one.number):
            return peer
    return None


def _wait_for_peer(lanes: Lanes, peer: Cta) -> Wait:
    return Wait(lanes, _key(peer), lambda: f"waits for the same tcgen05.alloc in {peer.label}")


def _wait(wg: Warpgroup, lanes: Lanes, columns: int, memory: TensorMemory) -> Wait:
    return Wait(
        lanes,
        _key(wg.cta),
        lambda: f"waits for {columns} columns of tensor memory: {memory.describe()}",
    )


def _key(cta: Cta) -> tuple[str, int]:
    return ("tensor memory", cta.index)


def _check_request(
    wg: Warpgroup, mask: Mask, site: Instruction, memory: TensorMemory, columns: int
) -> None:
    machine = wg.machine
    if not _possible(columns):
        machine.fault(
            "tensor-memory",
            f"an allocation of {columns} columns; 32, 64, 128, 256 or 512 are possible",
            site, wg, mask,
        )  # fmt: skip
    if memory.relinquished:
        machine.fault(
            "tensor-memory",
            "an allocation after the CTA has given up the right to allocate",
            site, wg, mask,
        )  # fmt: skip
    if memory.sizes and columns > memory.sizes[-1]:
        machine.find(
            "tensor-memory",
            f"an allocation of {columns} columns after one of {memory.sizes[-1]}: sizes must not "
            "grow",
            site, wg, mask,
        )  # fmt: skip


def _check_pair(
    wg: Warpgroup, mask: Mask, site: Instruction, ctas: tuple[Cta, ...], one: Allocation
) -> None:
    """The peer's allocation of the same number, if it has come, has to be of the same size."""
    for cta in ctas:
        peer = cta.tensor_memory
        if cta is wg.cta or peer is None or len(peer.sizes) <= one.number:
            continue
        if peer.sizes[one.number] != one.columns:
            wg.machine.find(
                "tensor-memory",
                f"allocation {one.number} of the pair is of {one.columns} columns here and of "
                f"{peer.sizes[one.number]} in {cta.label}",
                site, wg, mask,
            )  # fmt: skip


def dealloc(i: Instruction, e: Emitter) -> None:
    """``tcgen05.dealloc``: frees the allocation at an address."""
    check_words(i, e, {"dealloc", *_COMMON})
    _check_count(i, e)
    group = cta_group(i, e)
    where, count = e.reader(i.operands[0], "b32"), e.reader(i.operands[1], "u32")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        ctas = use_group(wg, mask, i, group)
        warps = whole_warps(wg, mask, i)
        addresses = per_warp(wg, mask, warps, where(wg), i, "the address")
        counts = per_warp(wg, mask, warps, count(wg), i, "the number of columns")
        for warp, address, columns in zip(warps, addresses, counts, strict=True):
            part = mask if len(warps) == 1 else warp_mask(wg, warp)
            _free(wg, part, i, ctas, address, columns)

    e.call(handler)


def _free(
    wg: Warpgroup, mask: Mask, site: Instruction, ctas: tuple[Cta, ...], address: int, columns: int
) -> None:
    machine = wg.machine
    memory = memory_of(wg, mask, site)
    lane, column = split_address(address)
    one = memory.find_allocation(column) if lane == 0 else None
    if one is None or one.columns != columns:
        machine.fault(
            "tensor-memory",
            f"{columns} columns at {address:#x} were not allocated together: {memory.describe()}",
            site, wg, mask,
        )  # fmt: skip
    for cta in ctas:
        peer = cta.tensor_memory
        if cta is wg.cta or peer is None:
            continue
        if len(peer.sizes) > one.number:
            if machine.observer.enabled:
                machine.observer.pair_freed(wg, mask, cta, one.number, site)
        else:
            machine.find(
                "tensor-memory",
                f"columns are freed before {cta.label}, the other of the pair, has allocated"
                " its own",
                site, wg, mask,
            )  # fmt: skip
    if machine.observer.enabled:
        part = rectangle(wg.cta, 0, LANES, one.first, columns)
        machine.observer.tensor_access(wg, mask, [part], "free", site)
    memory.free(one)
    machine.progress()
    machine.scheduler.wake(_key(wg.cta))


def relinquish(i: Instruction, e: Emitter) -> None:
    """``tcgen05.relinquish_alloc_permit``: the CTA will allocate no more."""
    check_words(i, e, {"relinquish_alloc_permit", *_COMMON} - {"b32"})
    if i.operands:
        raise e.refuse("no operand was expected")
    group = cta_group(i, e)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        use_group(wg, mask, i, group)
        whole_warps(wg, mask, i)
        memory_of(wg, mask, i).relinquished = True

    e.call(handler)
