"""Tensor copies (PTX ISA, "cp.async.bulk.tensor" and its relatives): boxes of a tensor map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fa4gen.emulator.instructions.copy import bulk_groups, packed, reductions
from fa4gen.emulator.instructions.copy.boxes import (
    Chunks,
    Combine,
    pieces,
    read_shared,
    write_shared,
)
from fa4gen.emulator.instructions.copy.endpoints import (
    check_shared,
    check_single_issue,
    find_targets,
    issuers,
    only,
    pick,
)
from fa4gen.emulator.instructions.copy.placing import Part, global_ranges, place, sizes
from fa4gen.emulator.instructions.copy.tensor_forms import (
    COMPLETES,
    check_count,
    map_operand,
    read_form,
)
from fa4gen.emulator.ptx.syntax import Instruction
from fa4gen.emulator.report import Severity
from fa4gen.emulator.state.machine import AsyncOp, SharedRange, Warpgroup
from fa4gen.emulator.state.registers import Mask
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.registry import Translate

SHARED_ALIGN: Final = 128
BYTES_PER_CYCLE: Final = 64
_NAN_FILL: Final = (
    "elements outside the tensor are filled with the NaN of oobFill NAN_REQUEST_ZERO_FMA, which "
    "the hardware may take for zero in multiply-adds; which instructions do is not documented, and "
    "here it is a NaN in all of them: use no such element, or have zeros filled in"
)


def _load(i: Instruction, e: Emitter) -> None:
    form = read_form(
        i, e, "tensor",
        (COMPLETES, "multicast::cluster", "cta_group::1", "cta_group::2", "tile::gather4",
         "im2col"),
    )  # fmt: skip
    cluster = form.spaces == ("shared::cluster", "global")
    if not cluster and form.spaces != ("shared::cta", "global"):
        raise e.refuse("state spaces")
    multicast = "multicast::cluster" in form.words
    if COMPLETES not in form.words or (multicast and not cluster):
        raise e.refuse("completion mechanism or multicast")
    given = 3 + bool(form.offsets)
    check_count(i, e, given + multicast + ("L2::cache_hint" in form.words))
    destination, barrier = (e.address(i.operands[n], shared=True) for n in (0, 2))
    source = map_operand(i, e, 1, form, 3)
    to = e.reader(i.operands[given], "u16") if multicast else None
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
        size, extent, _ = sizes(m, boxes)
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


def load_boxes(boxes: Sequence[Part], memory: Any) -> Chunks:
    """The chunks of all boxes, one after the other."""
    parts = [box.load(memory) for box in boxes]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _store(i: Instruction, e: Emitter) -> None:
    reduces = i.opcode == "cp" and i.modifiers[0] == "reduce"
    operations = reductions.OPERATIONS if reduces else ()
    rows = () if reduces else ("tile::scatter4",)
    form = read_form(i, e, "tensor", ("bulk_group", "im2col_no_offs", *rows, *operations))
    if form.spaces != ("global", "shared::cta") or "bulk_group" not in form.words:
        raise e.refuse("state spaces or completion mechanism")
    operation = next(iter(form.words & set(operations)), None)
    if reduces and (operation is None or len(form.words & set(operations)) != 1):
        raise e.refuse("one operation was expected")
    check_count(i, e, 2 + ("L2::cache_hint" in form.words))
    goal, source = map_operand(i, e, 0, form), e.address(i.operands[1], shared=True)
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
        size, extent, count = sizes(m, boxes)
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
    form = read_form(i, e, "tensor", ("L2", "tile::gather4", "im2col"))
    if form.spaces != ("global",) or "L2" not in form.words:
        raise e.refuse("state spaces")
    check_count(i, e, 1 + bool(form.offsets) + ("L2::cache_hint" in form.words))
    source = map_operand(i, e, 0, form, 1)

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
