"""The endpoints of bulk copies: shared memory of the cluster, global memory, mbarriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.machine import Cta, Mbarrier, Warpgroup
from fa4gen.emulator.state.memory import RESERVED_SHARED
from fa4gen.emulator.state.registers import WARP_LANES, Mask, lane_mask


@dataclass(frozen=True, slots=True)
class Target:
    """A place in a CTA's shared memory, and the barrier that counts the bytes written there."""

    cta: Cta
    offset: int
    barrier: Mbarrier


def pick(row: Any, lane: int) -> int:
    """The value of one lane; ``row`` may be a scalar that all lanes share."""
    return int(row[lane]) if getattr(row, "ndim", 0) else int(row)


def only(wg: Warpgroup, lane: int) -> NDArray[np.bool_]:
    """The mask of one lane."""
    return lane_mask(wg.lanes, lane)


def find_targets(
    wg: Warpgroup,
    lane: int,
    site: Instruction,
    *,
    address: int,
    barrier: int,
    size: int,
    align: int,
    cluster: bool,
    multicast: int | None = None,
    pair: bool = False,
    tensor: bool = False,
) -> list[Target]:
    """The destinations of a copy into shared memory: one, or one in every CTA of ``multicast``.

    ``address`` and ``barrier`` are shared addresses; ``cluster`` allows other CTAs; ``pair``
    (.cta_group::2) lets the barrier be in the other CTA of the destination's pair. ``tensor`` takes
    the pair's leader's barrier for the own one in other copies to the own CTA, with a remark.
    """
    machine = wg.machine
    first, offset = machine.shared_at(wg, address, site, cluster)
    home, at = machine.shared_at(wg, barrier, site, cluster)
    check_shared(wg, lane, site, first, offset, size, align)
    ctas = first.cluster.ctas
    mask = only(wg, lane)
    if multicast is None:
        apart = (
            f"the mbarrier is in the CTA of rank {home.rank}, the destination in that of rank "
            f"{first.rank}"
        )
        leads = home.rank == first.rank - 1 and first.rank % 2 == 1
        if tensor and not pair and first is wg.cta and leads:
            text = f"{apart}; the one at the same place there is signalled"
            machine.find("barrier-misuse", text, site, wg, mask, Severity.ISA)
            home = first
        if home is not first and not (pair and home.rank ^ 1 == first.rank):
            machine.fault(
                "barrier-misuse",
                apart,
                site,
                wg,
                mask,
            )
        return [Target(first, offset, machine.barrier(home, at, wg, mask, site))]
    if multicast == 0 or multicast >> len(ctas):
        machine.fault(
            "illegal-instruction",
            f"multicast mask {multicast:#x} for a cluster of {len(ctas)}",
            site,
            wg,
            mask,
        )
    targets = []
    for cta in ctas:
        if multicast >> cta.rank & 1:
            keeper = ctas[cta.rank & ~1 | home.rank & 1] if pair else cta
            targets.append(Target(cta, offset, machine.barrier(keeper, at, wg, mask, site)))
    return targets


def check_shared(
    wg: Warpgroup, lane: int, site: Instruction, cta: Cta, offset: int, size: int, align: int
) -> None:
    """Stop at a place in shared memory that is misaligned or not the kernel's."""
    machine = wg.machine
    if offset % align:
        machine.fault(
            "misaligned",
            f"offset {offset} of shared memory ({cta.name_of(offset)}) is not a multiple of"
            f" {align}",
            site,
            wg,
            only(wg, lane),
        )
    if offset < RESERVED_SHARED or offset + size > cta.shared.size:
        machine.fault(
            "out-of-bounds",
            f"bytes {offset} to {offset + size} of shared memory; the kernel's are "
            f"{RESERVED_SHARED} to {cta.shared.size}",
            site,
            wg,
            only(wg, lane),
        )


def check_global(
    wg: Warpgroup, lane: int, site: Instruction, start: int, stop: int, *, writes: bool
) -> None:
    """Stop at global memory that belongs to no array, or to one that is read only."""
    memory = wg.machine.memory
    region = memory.region(start)
    if region is None or stop > region.stop:
        bad = start if region is None else region.stop
        wg.machine.fault(
            "out-of-bounds",
            f"{'a write' if writes else 'a read'} of {memory.describe(start)} to "
            f"{memory.describe(stop - 1)}: {memory.describe(bad)}",
            site,
            wg,
            only(wg, lane),
        )
    if writes and not region.writable:
        wg.machine.fault(
            "out-of-bounds",
            f"a write to {region.name}, which is read only",
            site,
            wg,
            only(wg, lane),
        )


def check_single_issue(wg: Warpgroup, mask: Mask, site: Instruction, *rows: Any) -> list[int]:
    """Remark on warps whose lanes all issue the same copy; return the numbers of such warps."""
    lanes = wg.lanes_of(mask)
    alike: list[int] = []
    if len(lanes) < WARP_LANES:
        return alike
    for warp in range(wg.lanes // WARP_LANES):
        part = slice(warp * WARP_LANES, (warp + 1) * WARP_LANES)
        if mask is not None and not mask[part].all():
            continue
        if all(getattr(row, "ndim", 0) == 0 or (row[part] == row[part][0]).all() for row in rows):
            alike.append(warp)
            here = np.zeros(wg.lanes, np.bool_)
            here[part] = True
            wg.machine.find(
                "illegal-instruction",
                "every lane of a warp issues the same copy; one thread should",
                site,
                wg,
                here,
                Severity.REVIEW,
            )
    return alike


def issuers(wg: Warpgroup, mask: Mask, alike: list[int]) -> list[range]:
    """The lanes that issue a store together, those of the warps ``alike``; the others alone.

    The lanes of a warp store the same bytes to the same place 32 times. ptxas makes one instruction
    of the warp of it, so it is one operation, for which each of the lanes can wait.
    """
    result = []
    for lane in wg.lanes_of(mask).tolist():
        warp = lane // WARP_LANES
        if warp not in alike:
            result.append(range(lane, lane + 1))
        elif lane % WARP_LANES == 0:
            result.append(range(lane, lane + WARP_LANES))
    return result
