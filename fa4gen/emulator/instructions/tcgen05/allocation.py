"""Handing out columns of tensor memory (PTX ISA, "tcgen05.alloc" and its relatives).

With ``.cta_group::2`` an allocation waits until the peer has come to its own of the same number, as
FlashAttention-4 and CUTLASS expect, whose pairs have no barrier between there and their first
product; but it orders nothing else. What is checked is that both CTAs of a pair ask for the same
sizes in the same order, and that neither gives back columns before the other has allocated its own.
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
from fa4gen.emulator.state.machine import Cta, Gang
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
from fa4gen.emulator.translate.outcome import End, Outcome, Wait

_COMMON: Final = {"cta_group::1", "cta_group::2", "sync", "aligned", "b32"}


def _check_count(i: Instruction, e: Emitter) -> None:
    if len(i.operands) != 2:
        raise e.refuse("an address and a number of columns were expected")
    columns = i.operands[1]
    if isinstance(columns, Immediate) and not _possible(columns.bits):
        raise e.refuse(f"{columns.bits} columns; 32, 64, 128, 256 or 512")


def _possible(columns: int) -> bool:
    return UNIT <= columns <= COLUMNS and columns & (columns - 1) == 0


def make_alloc(i: Instruction, e: Emitter) -> End:
    """``tcgen05.alloc``: waits until so many columns are free; their address goes to shared."""
    check_words(i, e, {"alloc", "shared::cta", *_COMMON})
    _check_count(i, e)
    group = cta_group(i, e)
    generic = "shared::cta" not in i.modifiers
    goal = e.address(i.operands[0], shared=not generic)
    count = e.reader(i.operands[1], "u32")

    def place(gang: Gang, mask: Mask, address: int) -> int:
        machine = gang.machine
        if generic:
            if not SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
                machine.fault(
                    "out-of-bounds",
                    f"generic address {address:#x} is not in shared memory",
                    i, gang, mask,
                )  # fmt: skip
            address -= SHARED_WINDOW
        cta, offset = machine.shared_at(gang, address, i, False)
        lane = gang.first_lane(mask)
        check_shared(gang, lane, i, cta, offset, 4, 4)
        return offset

    def grant(gang: Gang, mask: Mask, one: Allocation, offset: int) -> None:
        cta, machine = gang.cta, gang.machine
        cta.shared.words[offset // 4] = one.first
        if machine.observer.enabled:
            lane = np.zeros(gang.lanes, np.bool_)
            lane[gang.first_lane(mask)] = True
            at = np.array([offset], np.int64)
            machine.observer.shared_access(gang, lane, cta, at, 4, "write", i)
            machine.observer.tensor_allocated(cta, one.first, one.columns)
        machine.progress()

    def end(gang: Gang, lanes: Lanes, timed_out: bool) -> Outcome:
        mask = lanes.mask
        memory = memory_of(gang, mask, i)
        ctas = use_group(gang, mask, i, group)
        warps = whole_warps(gang, mask, i)
        goals = per_warp(gang, mask, warps, goal(gang), i, "the address")
        counts = per_warp(gang, mask, warps, count(gang), i, "the number of columns")
        waits: list[Wait] = []
        done = lanes.array(gang).copy()
        for warp, address, columns in zip(warps, goals, counts, strict=True):
            part = mask if len(warps) == 1 else warp_mask(gang, warp)
            offset = place(gang, part, address)
            _check_request(gang, part, i, memory, columns)
            one = memory.waiting.pop(warp, None)
            if one is None:
                one = memory.try_allocate(columns, gang, part, i)
                if one is not None and len(ctas) > 1:
                    _check_pair(gang, part, i, ctas, one)
                    if gang.machine.observer.enabled:
                        gang.machine.observer.pair_allocated(gang, part, one.number)
                    gang.machine.scheduler.wake(_key(gang.cta))
            peer = None if one is None else _missing_peer(gang.cta, ctas, one)
            if one is not None and peer is not None:
                memory.waiting[warp] = one
                lacking = Lanes(warp_mask(gang, warp))
                done[lacking.mask] = False
                waits.append(_wait_for_peer(lacking, peer))
                continue
            if one is None:
                done[warp_mask(gang, warp)] = False
                waits.append(_wait(gang, Lanes(warp_mask(gang, warp)), columns, memory))
                continue
            grant(gang, part, one, offset)
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


def _wait(gang: Gang, lanes: Lanes, columns: int, memory: TensorMemory) -> Wait:
    return Wait(
        lanes,
        _key(gang.cta),
        lambda: f"waits for {columns} columns of tensor memory: {memory.describe()}",
    )


def _key(cta: Cta) -> tuple[str, int]:
    return ("tensor memory", cta.index)


def _check_request(
    gang: Gang, mask: Mask, site: Instruction, memory: TensorMemory, columns: int
) -> None:
    machine = gang.machine
    if not _possible(columns):
        machine.fault(
            "tensor-memory",
            f"an allocation of {columns} columns; 32, 64, 128, 256 or 512 are possible",
            site, gang, mask,
        )  # fmt: skip
    if memory.relinquished:
        machine.fault(
            "tensor-memory",
            "an allocation after the CTA has given up the right to allocate",
            site, gang, mask,
        )  # fmt: skip
    if memory.sizes and columns > memory.sizes[-1]:
        machine.find(
            "tensor-memory",
            f"an allocation of {columns} columns after one of {memory.sizes[-1]}: sizes must not "
            "grow",
            site, gang, mask,
        )  # fmt: skip


def _check_pair(
    gang: Gang, mask: Mask, site: Instruction, ctas: tuple[Cta, ...], one: Allocation
) -> None:
    """The peer's allocation of the same number, if it has come, has to be of the same size."""
    for cta in ctas:
        peer = cta.tensor_memory
        if cta is gang.cta or peer is None or len(peer.sizes) <= one.number:
            continue
        if peer.sizes[one.number] != one.columns:
            gang.machine.find(
                "tensor-memory",
                f"allocation {one.number} of the pair is of {one.columns} columns here and of "
                f"{peer.sizes[one.number]} in {cta.label}",
                site, gang, mask,
            )  # fmt: skip


def dealloc(i: Instruction, e: Emitter) -> None:
    """``tcgen05.dealloc``: gives back what was allocated at an address."""
    check_words(i, e, {"dealloc", *_COMMON})
    _check_count(i, e)
    group = cta_group(i, e)
    where, count = e.reader(i.operands[0], "b32"), e.reader(i.operands[1], "u32")

    def handler(gang: Gang, mask: Mask) -> None:
        ctas = use_group(gang, mask, i, group)
        warps = whole_warps(gang, mask, i)
        addresses = per_warp(gang, mask, warps, where(gang), i, "the address")
        counts = per_warp(gang, mask, warps, count(gang), i, "the number of columns")
        for warp, address, columns in zip(warps, addresses, counts, strict=True):
            part = mask if len(warps) == 1 else warp_mask(gang, warp)
            _free(gang, part, i, ctas, address, columns)

    e.call(handler)


def _free(
    gang: Gang, mask: Mask, site: Instruction, ctas: tuple[Cta, ...], address: int, columns: int
) -> None:
    machine = gang.machine
    memory = memory_of(gang, mask, site)
    lane, column = split_address(address)
    one = memory.find_allocation(column) if lane == 0 else None
    if one is None or one.columns != columns:
        machine.fault(
            "tensor-memory",
            f"{columns} columns at {address:#x} were not allocated together: {memory.describe()}",
            site, gang, mask,
        )  # fmt: skip
    for cta in ctas:
        peer = cta.tensor_memory
        if cta is gang.cta or peer is None:
            continue
        if len(peer.sizes) > one.number:
            if machine.observer.enabled:
                machine.observer.pair_freed(gang, mask, cta, one.number, site)
        else:
            machine.find(
                "tensor-memory",
                f"columns are given back before {cta.label}, the other of the pair, has allocated"
                " its own",
                site, gang, mask,
            )  # fmt: skip
    if machine.observer.enabled:
        part = rectangle(gang.cta, 0, LANES, one.first, columns)
        machine.observer.tensor_access(gang, mask, [part], "free", site)
    memory.free(one)
    machine.progress()
    machine.scheduler.wake(_key(gang.cta))


def relinquish(i: Instruction, e: Emitter) -> None:
    """``tcgen05.relinquish_alloc_permit``: the CTA will allocate no more."""
    check_words(i, e, {"relinquish_alloc_permit", *_COMMON} - {"b32"})
    if i.operands:
        raise e.refuse("no operand was expected")
    group = cta_group(i, e)

    def handler(gang: Gang, mask: Mask) -> None:
        use_group(gang, mask, i, group)
        whole_warps(gang, mask, i)
        memory_of(gang, mask, i).relinquished = True

    e.call(handler)
