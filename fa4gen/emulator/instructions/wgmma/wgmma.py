"""wgmma: asynchronous matrix products of a warpgroup (PTX ISA, "wgmma.mma_async").

A product takes effect between its issue and the ``wait_group`` that retires it. Fragment maps are
those of the ISA, checked against an H200. Sums of 8-bit floats are cut as the hardware cuts them;
others are in float32 without that, so results agree within rounding; integers are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fa4gen.emulator.errors import UnsupportedError
from fa4gen.emulator.instructions.mma import sparsity
from fa4gen.emulator.instructions.mma.descriptors import DescriptorError, decode
from fa4gen.emulator.instructions.mma.operand_tiles import (
    ELEMENT_BYTES,
    inside,
    values_of,
)
from fa4gen.emulator.instructions.wgmma.forms import Form, read_form
from fa4gen.emulator.instructions.wgmma.operands import Operands, TileKey, joined
from fa4gen.emulator.instructions.wgmma.products import (
    ROWS,
    Accumulators,
    Product,
    Tile,
    run_chain,
)
from fa4gen.emulator.ptx.flow.wgmma_registers import find_flights
from fa4gen.emulator.ptx.syntax import Immediate, Instruction
from fa4gen.emulator.state.attached import Attached
from fa4gen.emulator.state.machine import AsyncOp, Cta, SharedRange, Warpgroup
from fa4gen.emulator.state.registers import WARP_LANES, WARPGROUP_LANES, Mask, as_row
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

_MAC_PER_CYCLE: Final = {1: 4096, 2: 2048, 4: 1024}


@dataclass(slots=True)
class Groups:
    """Products of a warpgroup: not yet committed, committed in order, and not yet announced.

    Each runs after ``last``, the one issued before it. ``fenced``: none has followed the last
    ``wgmma.fence``.
    """

    last: AsyncOp | None = None
    fenced: bool = False
    open: list[AsyncOp] = field(default_factory=list)
    committed: list[list[AsyncOp]] = field(default_factory=list)
    fresh: list[tuple[AsyncOp, Operands]] = field(default_factory=list)
    chain: list[Product] = field(default_factory=list)


_GROUPS: Final = Attached[Warpgroup, Groups](lambda wg: Groups())
_READS: Final = Attached[Cta, dict[Operands, tuple[SharedRange, ...]]](lambda cta: {})
"""The ranges of shared memory that operands take, once they have been worked out."""


@lru_cache(maxsize=8)
def _operand_map(size: int) -> NDArray[np.int64]:
    """Flat index into (register, lane, element of the register) for A: shape (64, k)."""
    per = 4 // size
    register = np.arange(4)[:, None, None]
    lane = np.arange(WARPGROUP_LANES)[None, :, None]
    element = np.arange(per)[None, None, :]
    row = lane // 32 * 16 + lane % 32 // 4 + 8 * (register & 1) + 0 * element
    column = per * (lane % 4) + element + 4 * per * (register >> 1)
    at = np.empty((ROWS, 8 * per), np.int64)
    at[row, column] = np.arange(row.size).reshape(row.shape)
    return at


def _product(i: Instruction, e: Emitter) -> None:
    form = read_form(i, e)
    shape, read_a = form.shape, form.a
    accumulators = Accumulators(i.operands[0], shape, e)
    size = ELEMENT_BYTES[shape.a_stored[0]]
    early = i in _copied(e)
    facts = {
        "a": "registers" if read_a is None else "shared memory",
        "rows": ROWS,
        "columns": shape.n,
        "shared": float(shape.n * shape.b_bytes + (ROWS * 32 if read_a is not None else 0)),
    }
    cycles = 2.0 * ROWS * shape.n * shape.a_stored[1] / (_MAC_PER_CYCLE[size] * 2)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        machine = wg.machine
        _whole(wg, mask, i)
        right, b_key = _tile(wg, form.b, i, shape.n, not form.transpose_b, shape.b_stored)
        left: Tile | NDArray[Any]
        a_keys: tuple[TileKey, ...] = ()
        if read_a is not None:
            left, a_key = _tile(wg, read_a, i, ROWS, not form.transpose_a, shape.a_stored)
            a_keys = (a_key,)
        else:
            left = _fragment(wg, form.fragments, shape.a)
        adds = as_row(form.accumulate(wg), wg.lanes)
        if adds.any() != adds.all():
            machine.find("illegal-instruction", "scale-d differs between lanes", i, wg, mask)
        codes = None if form.metadata is None else _codes(wg, i, form)
        product = Product(shape, accumulators, left, right, bool(adds[0]), form.sign, codes)
        groups = _GROUPS.of(wg)
        if not groups.chain or not product.joins(groups.chain):
            groups.chain = []
        chain, position = groups.chain, len(groups.chain)
        chain.append(product)

        def run() -> None:
            run_chain(wg, chain, position)

        after = () if groups.last is None or groups.last.done else (groups.last,)
        op = AsyncOp("wgmma", wg, 0, i, run, after=after, unit="tensor", cycles=cycles)
        op.notes["product"] = facts
        groups.last = op
        groups.open.append(op)
        if machine.observer.enabled:
            if groups.fenced:
                machine.observer.warpgroup_meets(wg)
            if not groups.fresh:
                wg.deferred.append(lambda: _announce(wg, groups) if groups.fresh else None)
            groups.fresh.append((op, Operands(a_keys, (b_key,))))
        groups.fenced = False
        machine.progress()
        machine.engine.submit(op)
        if early:
            machine.complete(op)

    e.call(handler)


def _codes(wg: Warpgroup, i: Instruction, form: Form) -> NDArray[np.uint8]:
    """The metadata of a sparse A: (64, chunks)."""
    assert form.metadata is not None
    words = as_row(form.metadata(wg), wg.lanes).reshape(-1, WARP_LANES)
    codes = sparsity.lanes_codes(words, form.shape.threads, form.selector).reshape(ROWS, -1)
    valid = sparsity.valid_codes(form.shape.a != "tf32", False)
    wrong = sparsity.first_wrong(codes, valid)
    if wrong:
        wg.machine.find("illegal-instruction", wrong, i, wg, None)
    return codes


def _announce(wg: Warpgroup, groups: Groups) -> None:
    """Tell the observer of the products of one straight run together.

    Nothing that orders threads is between them, so they share one place in the vector clocks.
    """
    fresh, groups.fresh = groups.fresh, []
    first = fresh[0][0]
    operands = joined([one for _, one in fresh])
    known = _READS.of(wg.cta)
    reads = known.get(operands)
    if reads is None:
        ranges = operands.ranges()
        reads = known[operands] = tuple(SharedRange(wg.cta, start, stop) for start, stop in ranges)
    first.reads = reads
    first.notes["operands"] = operands
    cycles, first.cycles = first.cycles, sum(op.cycles for op, _ in fresh)
    moved = sum(op.notes["product"]["shared"] for op, _ in fresh)
    first.notes["product"] = {**first.notes["product"], "shared": moved}
    wg.machine.observer.issued(first)
    first.cycles = cycles
    for op, _ in fresh[1:]:
        op.slot, op.epoch, op.clock = first.slot, first.epoch, first.clock
        op.end_time = first.end_time


def _copied(e: Emitter) -> set[Instruction]:
    """The products whose accumulators are copied in flight."""
    code = e.layout.function
    known: set[Instruction] | None = e.layout.notes.get("wgmma copied")
    if known is None:
        known = {code.instructions[index] for index in find_flights(code).copied}
        e.layout.notes["wgmma copied"] = known
    return known


def _whole(wg: Warpgroup, mask: Mask, i: Instruction) -> None:
    if wg.lanes < WARPGROUP_LANES or (mask is not None and not mask.all()):
        wg.machine.fault(
            "partial-warp", f"{i.text} needs all four warps of the warpgroup", i, wg, mask
        )


def _tile(
    wg: Warpgroup, reader: Reader, i: Instruction, mn: int, k_major: bool, stored: tuple[str, int]
) -> tuple[Tile, TileKey]:
    """The operand that all lanes agree on, checked."""
    machine = wg.machine
    kind, k = stored
    size = ELEMENT_BYTES[kind]
    values = as_row(reader(wg), wg.lanes)
    if (values != values[0]).any():
        machine.find("descriptor", "the lanes have different matrix descriptors", i, wg, None)
    try:
        descriptor = decode(int(values[0]), 90)
    except DescriptorError as error:
        machine.fault("descriptor", str(error), i, wg, None)
    if k_major and 0 < descriptor.span < size * k:
        raise UnsupportedError(
            i, f"where the second half of K is with a swizzle of {descriptor.span} bytes"
        )
    if not inside(wg.cta.shared, descriptor, k_major, mn, k, size):
        machine.fault(
            "out-of-bounds",
            f"an operand tile at shared offset {descriptor.address} is "
            f"not inside shared memory ({wg.cta.shared.size} bytes)",
            i,
            wg,
            None,
        )
    return Tile(descriptor, k_major), (descriptor, k_major, mn, k, size)


def _fragment(wg: Warpgroup, fragments: list[Reader], kind: str) -> NDArray[Any]:
    """A from registers, (64, k)."""
    size = ELEMENT_BYTES[kind]
    raw = np.stack([as_row(read(wg), wg.lanes) for read in fragments])
    return values_of(raw.view(np.dtype(f"u{size}")).reshape(-1).take(_operand_map(size)), kind)


def _fence(i: Instruction, e: Emitter) -> None:
    if i.modifiers != ("fence", "sync", "aligned"):
        raise e.refuse("")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        _whole(wg, mask, i)
        groups = _GROUPS.of(wg)
        groups.fenced = True
        if groups.fresh:
            # the warps have not met before these
            _announce(wg, groups)

    e.call(handler)


def _commit(i: Instruction, e: Emitter) -> None:
    if i.modifiers != ("commit_group", "sync", "aligned"):
        raise e.refuse("")

    def handler(wg: Warpgroup, mask: Mask) -> None:
        _whole(wg, mask, i)
        groups = _GROUPS.of(wg)
        if groups.fresh:
            _announce(wg, groups)
        groups.committed.append(groups.open)
        groups.open = []
        groups.chain = []

    e.call(handler)


def _wait(i: Instruction, e: Emitter) -> None:
    operand = i.operands[0]
    if i.modifiers != ("wait_group", "sync", "aligned"):
        raise e.refuse("")
    if not isinstance(operand, Immediate) or operand.kind != "int" or operand.bits < 0:
        raise e.refuse("the number of groups is a literal")
    newest = operand.bits

    def handler(wg: Warpgroup, mask: Mask) -> None:
        _whole(wg, mask, i)
        groups = _GROUPS.of(wg)
        count = max(len(groups.committed) - newest, 0)
        retired = groups.committed[:count]
        del groups.committed[:count]
        ops = [op for group in retired for op in group]
        for op in ops:
            wg.machine.complete(op)
        if ops and wg.machine.observer.enabled:
            # products that were announced together are seen together
            places = {(op.slot, op.epoch): op for op in ops}
            wg.machine.observer.observed(wg, mask, list(places.values()), "complete")

    e.call(handler)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "wgmma.mma_async": _product,
    "wgmma.fence": _fence,
    "wgmma.commit_group": _commit,
    "wgmma.wait_group": _wait,
}
