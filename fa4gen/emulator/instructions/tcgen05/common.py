"""The common part of tcgen05 instructions: groups of CTAs, participating lanes, cells."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.ptx.syntax import Function, Instruction
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import Cta, Machine, TensorRange, Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, Mask
from fa4gen.emulator.state.tensor_memory import COLUMNS, TensorMemory
from fa4gen.emulator.translate.emit import Emitter


def cta_group(i: Instruction, e: Emitter) -> int:
    """1 or 2, from the modifiers; the instruction has to say."""
    groups = [word for word in i.modifiers if word.startswith("cta_group::")]
    if groups == ["cta_group::1"]:
        return 1
    if groups == ["cta_group::2"]:
        return 2
    raise e.refuse("one .cta_group::1 or .cta_group::2 was expected")


def check_words(i: Instruction, e: Emitter, allowed: set[str]) -> None:
    """Refuse modifiers that are not in ``allowed``, and repeated ones."""
    for word in i.modifiers:
        if word not in allowed:
            raise e.refuse(f".{word}")
    if len(set(i.modifiers)) != len(i.modifiers):
        raise e.refuse("a modifier twice")


def memory_of(wg: Warpgroup, mask: Mask, site: Instruction, cta: Cta | None = None) -> TensorMemory:
    """The tensor memory of a CTA; stops where the target has none."""
    memory = (cta or wg.cta).tensor_memory
    if memory is None:
        wg.machine.fault(
            "illegal-instruction", "tensor memory does not exist before sm_100", site, wg, mask
        )
    return memory


_GROUP: Final = Attached[Cta, int](lambda cta: 1)
"""The .cta_group that a CTA has used first."""


def use_group(wg: Warpgroup, mask: Mask, site: Instruction, group: int) -> tuple[Cta, ...]:
    """The CTAs that work together, the one of even rank first.

    Stops where a pair is needed and there is none, or where a CTA uses both kinds of groups.
    """
    cta = wg.cta
    before = _GROUP.known(cta)
    if before is None:
        before = group
        _GROUP.set(cta, group)
    if before != group:
        wg.machine.fault(
            "illegal-instruction",
            f".cta_group::{group} in a kernel that has used .cta_group::{before}",
            site,
            wg,
            mask,
        )
    if group == 1:
        return (cta,)
    ctas = cta.cluster.ctas
    if len(ctas) % 2:
        wg.machine.fault(
            "illegal-instruction",
            f".cta_group::2 in a cluster of {len(ctas)}: CTA of rank {cta.rank} has no peer",
            site,
            wg,
            mask,
        )
    first = cta.rank & ~1
    return (ctas[first], ctas[first + 1])


def whole_warps(wg: Warpgroup, mask: Mask, site: Instruction) -> tuple[int, ...]:
    """The warps that take part, all 32 lanes of each; stops where lanes are missing."""
    if mask is None and wg.lanes % WARP_LANES == 0:
        return tuple(range(wg.warps))
    here = np.ones(wg.lanes, np.bool_) if mask is None else mask
    padded = np.pad(here, (0, -wg.lanes % WARP_LANES)).reshape(-1, WARP_LANES)
    any_lane, all_lanes = padded.any(axis=1), padded.all(axis=1)
    if (any_lane != all_lanes).any():
        wg.machine.fault(
            "partial-warp", f"{site.text} needs all 32 lanes of a warp", site, wg, mask
        )
    return tuple(int(warp) for warp in np.flatnonzero(all_lanes))


def warp_mask(wg: Warpgroup, warp: int) -> NDArray[np.bool_]:
    """The mask of one warp."""
    mask = np.zeros(wg.lanes, np.bool_)
    mask[warp * WARP_LANES : (warp + 1) * WARP_LANES] = True
    return mask


def per_warp(wg: Warpgroup, mask: Mask, warps: tuple[int, ...], row: Any, site: Instruction,
             what: str) -> list[int]:  # fmt: skip
    """A value for each of ``warps``; stops where the lanes of one disagree."""
    if getattr(row, "ndim", 0) == 0:
        return [int(row)] * len(warps)
    heads: list[int] = row[::WARP_LANES].tolist()
    if mask is None and len(row) % WARP_LANES == 0:
        by_warp = row.reshape(-1, WARP_LANES)
        same = by_warp == by_warp[:, :1]
    else:
        same = row == np.repeat(row[::WARP_LANES], WARP_LANES)[: wg.lanes]
    if not same.all() and (mask is None or not same[mask].all()):
        wg.machine.fault(
            "illegal-instruction", f"{what} differs among the lanes of a warp", site, wg, mask
        )
    return [heads[warp] for warp in warps]


def check_one_thread(wg: Warpgroup, mask: Mask, site: Instruction) -> None:
    """Remark on several lanes of a warp that all issue an instruction meant for one thread."""
    lanes = wg.lanes_of(mask)
    if len(lanes) > 1 and len(set((lanes // WARP_LANES).tolist())) < len(lanes):
        wg.machine.find(
            "illegal-instruction",
            f"every lane issues {site.text}, {len(lanes)} in all; one thread should",
            site,
            wg,
            mask,
            Severity.REVIEW,
        )


def wants_uninitialised(machine: Machine) -> bool:
    """Whether reads of unwritten cells are to be reported."""
    observer = machine.observer
    options = getattr(observer, "options", None)
    return observer.enabled and bool(getattr(options, "uninitialised", True))


@lru_cache(maxsize=16)
def _allocates(function: Function) -> bool:
    """Whether there is a tcgen05.alloc in an entry."""
    return any(one.text.startswith("tcgen05.alloc") for one in function.instructions)


def check_columns(
    wg: Warpgroup, mask: Mask, site: Instruction, cta: Cta, what: str, first: int, stop: int
) -> TensorMemory:
    """Stop where columns do not exist or are not allocated; return their memory.

    A kernel without any tcgen05.alloc uses all tensor memory, which works as long as nothing else
    runs on the SM: for review.
    """
    memory = memory_of(wg, mask, site, cta)
    if not memory.holds(first, stop) and not _allocates(wg.machine.function):
        memory.claim()
        wg.machine.remark(
            "tensor-memory",
            f"{what} tensor memory in a kernel without tcgen05.alloc: all {COLUMNS} columns count "
            "as its own, as if nothing else ran on the SM",
            site, wg, mask,
        )  # fmt: skip
    if not memory.holds(first, stop):
        where = f"columns {first} to {stop - 1} of tensor memory"
        if cta is not wg.cta:
            where += f" of {cta.label}"
        if stop > COLUMNS:
            text = f"{what} {where}, which has {COLUMNS}"
        else:
            text = f"{what} {where}, which are not all allocated: {memory.describe()}"
        wg.machine.fault("tensor-memory", text, site, wg, mask)
    return memory


def report_uninitialised(
    wg: Warpgroup, mask: Mask, site: Instruction, memory: TensorMemory, what: str,
    lanes: Any, columns: Any,
) -> None:  # fmt: skip
    """Report the first unwritten one of some cells; then they count as written.

    ``lanes`` and ``columns`` select cells of a (128, 512) array: slices or index arrays.
    """
    fresh = np.zeros_like(memory.written)
    fresh[lanes, columns] = True
    fresh &= ~memory.written
    lane, column = (int(part[0]) for part in np.nonzero(fresh))
    wg.machine.find(
        "uninitialised",
        f"{what} lane {lane}, column {column} of tensor memory, which nobody has written "
        f"({int(np.count_nonzero(fresh))} such cells)",
        site,
        wg,
        mask,
    )
    memory.written |= fresh


def rectangle(
    cta: Cta, first_lane: int, lanes: int, first_column: int, columns: int
) -> TensorRange:
    """Lanes and columns of tensor memory by their numbers."""
    return TensorRange(cta, first_lane, first_lane + lanes, first_column, first_column + columns)
