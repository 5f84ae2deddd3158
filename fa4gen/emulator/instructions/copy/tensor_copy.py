"""Tensor copies (PTX ISA, "cp.async.bulk.tensor" and its relatives): boxes of a tensor map."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.copy import bulk_groups, packed, reductions
from fa4gen.emulator.instructions.copy.boxes import (
    Box,
    Chunks,
    Combine,
    pieces,
    place_box,
    read_shared,
    write_shared,
)
from fa4gen.emulator.instructions.copy.endpoints import (
    check_global,
    check_shared,
    check_single_issue,
    find_targets,
    issuers,
    only,
    pick,
)
from fa4gen.emulator.instructions.copy.map_operands import read_map
from fa4gen.emulator.ptx.syntax import Address, Instruction, Symbol
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.async_ops import GlobalRange
from fa4gen.emulator.state.decoded_map import PADDED_BOX, DecodedMap
from fa4gen.emulator.state.machine import AsyncOp, SharedRange, Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter, Reader
from fa4gen.emulator.translate.registry import Translate

SHARED_ALIGN: Final = 128
BYTES_PER_CYCLE: Final = 64
_ROWS: Final = 4  # of tile::gather4 and tile::scatter4
_COMPLETES: Final = "mbarrier::complete_tx::bytes"


@dataclass(frozen=True, slots=True)
class Form:
    """The modifiers: rank, state spaces in order, everything else; and the operands."""

    rank: int
    spaces: tuple[str, ...]
    words: frozenset[str]

    @property
    def rows(self) -> bool:
        """Four rows instead of a box."""
        return bool(self.words & {"tile::gather4", "tile::scatter4"})


@dataclass(frozen=True, slots=True)
class MapOperand:
    """``[map, {coordinates}]``: readers of its parts."""

    address: Reader
    coordinates: tuple[Reader, ...]

    def rows(self, wg: Warpgroup) -> tuple[Any, list[Any]]:
        return self.address(wg), [read(wg) for read in self.coordinates]


def _form(i: Instruction, e: Emitter, start: str, allowed: tuple[str, ...]) -> Form:
    """Sort the modifiers after ``start``; ``allowed`` are those of this instruction."""
    words = i.modifiers[i.modifiers.index(start) + 1 :]
    rank, spaces, rest = 0, [], []
    for word in words:
        if re.fullmatch("[1-5]d", word) and not rank:
            rank = int(word[0])
        elif word in ("global", "shared::cta", "shared::cluster"):
            spaces.append(word)
        elif word in allowed or word in ("tile", "L2::cache_hint"):
            rest.append(word)
        else:
            raise e.refuse(f".{word}")
    if not rank:
        raise e.refuse("no dimension")
    if len(set(rest)) != len(rest) or {"cta_group::1", "cta_group::2"} <= set(rest):
        raise e.refuse("modifiers that exclude each other")
    form = Form(rank, tuple(spaces), frozenset(rest))
    if form.rows and rank != 2:
        raise e.refuse("rows of a map that is not two-dimensional")
    return form


def _map_operand(i: Instruction, e: Emitter, index: int, form: Form) -> MapOperand:
    operand = i.operands[index]
    if not isinstance(operand, Address) or operand.coordinates is None:
        raise e.refuse("a tensor map and coordinates were expected")
    if isinstance(operand.base, Symbol) and operand.base.variable.space not in ("global", "const"):
        raise e.refuse("the tensor map is named by its generic address")
    count = 1 + _ROWS if form.rows else form.rank
    items = operand.coordinates.items
    if len(items) != count:
        raise e.refuse(f"{len(items)} coordinates instead of {count}")
    return MapOperand(e.address(operand), tuple(e.reader(item, "s32") for item in items))


def _count(i: Instruction, e: Emitter, expected: int) -> None:
    if len(i.operands) != expected:
        raise e.refuse(f"{len(i.operands)} operands instead of {expected}")


def place(
    wg: Warpgroup,
    lane: int,
    site: Instruction,
    form: Form,
    address: int,
    at: Sequence[int],
    *,
    writes: bool,
) -> tuple[DecodedMap, list[Box]]:
    """Read the map and place the box or the rows; stop at what the hardware does not take."""
    machine = wg.machine
    m = read_map(wg, lane, site, address)
    if m.rank != form.rank:
        machine.fault(
            "tensor-map",
            f"a copy in {form.rank} dimensions with a map of {m.rank}",
            site, wg, only(wg, lane),
        )  # fmt: skip
    at = [_first_element(wg, lane, site, m, at[0]), *at[1:]]
    if writes and min(at) < 0:
        machine.fault(
            "illegal-instruction",
            f"a store to negative coordinates {tuple(at)}",
            site, wg, only(wg, lane),
        )  # fmt: skip
    if form.rows:
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


_NAN_FILL: Final = (
    "elements outside the tensor are filled with the NaN of oobFill NAN_REQUEST_ZERO_FMA, which "
    "the hardware may take for zero in multiply-adds; which instructions do is not documented, and "
    "here it is a NaN in all of them: use no such element, or have zeros filled in"
)


def global_ranges(boxes: Sequence[Box]) -> tuple[GlobalRange, ...]:
    """Hulls of what is in the tensor."""
    return tuple(GlobalRange(box.address, box.end, box.rows()) for box in boxes if not box.empty)


def _size(m: DecodedMap, boxes: Sequence[Box]) -> tuple[int, int, int]:
    """Bytes moved, bytes of shared memory from end to end and its 16-byte chunks, of all boxes."""
    lines = len(boxes) * int(np.prod(m.counts[1:], dtype=np.int64))
    return lines * m.moved_bytes, lines * m.pitch, lines * m.inner_bytes // 16


def _load(i: Instruction, e: Emitter) -> None:
    form = _form(
        i, e, "tensor",
        (_COMPLETES, "multicast::cluster", "cta_group::1", "cta_group::2", "tile::gather4"),
    )  # fmt: skip
    cluster = form.spaces == ("shared::cluster", "global")
    if not cluster and form.spaces != ("shared::cta", "global"):
        raise e.refuse("state spaces")
    multicast = "multicast::cluster" in form.words
    if _COMPLETES not in form.words or (multicast and not cluster):
        raise e.refuse("completion mechanism or multicast")
    _count(i, e, 3 + multicast + ("L2::cache_hint" in form.words))
    destination, barrier = (e.address(i.operands[n], shared=True) for n in (0, 2))
    source = _map_operand(i, e, 1, form)
    to = e.reader(i.operands[3], "u16") if multicast else None
    grouped = bool(form.words & {"cta_group::1", "cta_group::2"})
    pair = "cta_group::2" in form.words

    def issue(
        wg: Warpgroup,
        lane: int,
        address: int,
        at: list[int],
        goal: int,
        signal: int,
        ctas: int | None,
    ) -> None:
        m, boxes = place(wg, lane, i, form, address, at, writes=False)
        filled = m.nan_fill and not all(box.whole for box in boxes)
        if filled and wg.machine.observer.enabled:
            wg.machine.find("tensor-map", _NAN_FILL, i, wg, only(wg, lane), Severity.REVIEW)
        size, extent, _ = _size(m, boxes)
        lines = extent // m.pitch
        targets = find_targets(
            wg, lane, i,
            address=goal, barrier=signal, size=extent, align=SHARED_ALIGN, cluster=cluster,
            multicast=ctas, pair=pair, tensor=True,
        )  # fmt: skip
        memory = wg.machine.memory

        def run() -> None:
            chunks = load_boxes(boxes, memory)
            if m.element.padded:
                chunks = packed.padded(chunks, m.element.packed)
            for target in targets:
                write_shared(target.cta.shared, target.offset, m, chunks)

        def finish() -> None:
            for target in targets:
                target.barrier.signal_transaction(op, size)

        op = AsyncOp(
            "tensor copy", wg, lane, i, run, finish,
            reads=global_ranges(boxes),
            writes=tuple(
                SharedRange(one.cta, *piece)
                for one in targets
                for piece in pieces(m, one.offset, lines)
            ),
            unit="tma", cycles=size / BYTES_PER_CYCLE, notes={"map": address},
        )  # fmt: skip
        wg.machine.submit(op)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        if grouped and wg.machine.sm < 100:
            wg.machine.fault(
                "illegal-instruction", ".cta_group does not exist before sm_100", i, wg, mask
            )
        maps, at = source.rows(wg)
        goals, signals = destination(wg), barrier(wg)
        check_single_issue(wg, mask, i, maps, goals, *at)
        masks = to(wg) if to is not None else None
        for lane in wg.lanes_of(mask).tolist():
            ctas = None if masks is None else pick(masks, lane)
            where = [pick(row, lane) for row in at]
            issue(wg, lane, pick(maps, lane), where, pick(goals, lane), pick(signals, lane), ctas)

    e.call(handler)


def load_boxes(boxes: Sequence[Box], memory: Any) -> Chunks:
    """The chunks of all boxes, one after the other."""
    parts = [box.load(memory) for box in boxes]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _store(i: Instruction, e: Emitter) -> None:
    reduces = i.opcode == "cp" and i.modifiers[0] == "reduce"
    operations = reductions.OPERATIONS if reduces else ()
    rows = () if reduces else ("tile::scatter4",)
    form = _form(i, e, "tensor", ("bulk_group", *rows, *operations))
    if form.spaces != ("global", "shared::cta") or "bulk_group" not in form.words:
        raise e.refuse("state spaces or completion mechanism")
    operation = next(iter(form.words & set(operations)), None)
    if reduces and (operation is None or len(form.words & set(operations)) != 1):
        raise e.refuse("one operation was expected")
    _count(i, e, 2 + ("L2::cache_hint" in form.words))
    goal, source = _map_operand(i, e, 0, form), e.address(i.operands[1], shared=True)
    kind = "tensor reduction" if reduces else "tensor store"

    def issue(wg: Warpgroup, lanes: range, address: int, at: list[int], origin: int) -> None:
        machine = wg.machine
        lane = lanes.start
        m, boxes = place(wg, lane, i, form, address, at, writes=True)
        if m.element.padded and m.element.packed == 4:
            machine.fault(
                "illegal-instruction", f"a store of {m.element.name}, which loads only",
                i, wg, only(wg, lane),
            )  # fmt: skip
        combine: Combine | None = None
        if operation is not None:
            combine = reductions.find(operation, m.element.name)
            if combine is None:
                machine.fault(
                    "illegal-instruction",
                    f".{operation} does not work on {m.element.name}",
                    i, wg, only(wg, lane),
                )  # fmt: skip
        size, extent, count = _size(m, boxes)
        cta, offset = machine.shared_at(wg, origin, i, False)
        check_shared(wg, lane, i, cta, offset, extent, SHARED_ALIGN)

        def run() -> None:
            chunks = read_shared(cta.shared, offset, m, count)
            if m.element.padded:
                chunks = packed.squeezed(chunks)
            each = len(chunks) // len(boxes)
            for number, box in enumerate(boxes):
                box.store(machine.memory, chunks[number * each : (number + 1) * each], combine)

        op = AsyncOp(
            kind, wg, lane, i, run,
            reads=tuple(
                SharedRange(cta, *piece) for piece in pieces(m, offset, extent // m.pitch)
            ),
            writes=global_ranges(boxes),
            unit="tma", cycles=len(lanes) * size / BYTES_PER_CYCLE, notes={"map": address},
        )  # fmt: skip
        if reduces:
            op.notes["atomic"] = True
        bulk_groups.add(wg, lanes, op)
        machine.submit(op)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        maps, at = goal.rows(wg)
        origins = source(wg)
        alike = check_single_issue(wg, mask, i, maps, origins, *at)
        # a reduction adds as often as it is issued
        for lanes in issuers(wg, mask, [] if reduces else alike):
            lane = lanes.start
            where = [pick(row, lane) for row in at]
            issue(wg, lanes, pick(maps, lane), where, pick(origins, lane))

    e.call(handler)


def _prefetch(i: Instruction, e: Emitter) -> None:
    form = _form(i, e, "tensor", ("L2", "tile::gather4"))
    if form.spaces != ("global",) or "L2" not in form.words:
        raise e.refuse("state spaces")
    _count(i, e, 1 + ("L2::cache_hint" in form.words))
    source = _map_operand(i, e, 0, form)

    def handler(wg: Warpgroup, mask: Mask) -> None:
        maps, at = source.rows(wg)
        for lane in wg.lanes_of(mask).tolist():
            where = [pick(row, lane) for row in at]
            place(wg, lane, i, form, pick(maps, lane), where, writes=False)

    e.call(handler)


def _copy(i: Instruction, e: Emitter) -> None:
    spaces = [word for word in i.modifiers if word == "global" or word.startswith("shared")]
    if spaces[:1] == ["global"]:
        _store(i, e)
    else:
        _load(i, e)


TRANSLATIONS: Final[Mapping[str, Translate]] = {
    "cp.async.bulk.tensor": _copy,
    "cp.reduce.async.bulk.tensor": _store,
    "cp.async.bulk.prefetch.tensor": _prefetch,
}
