"""Packed float32 arithmetic of a straight run taken apart into that of single numbers.

Compilers write ``mov.b64 a, {x, y}`` for every operand of an ``.f32x2`` instruction and
``mov.b64 {x, y}, d`` for its result. Two plain instructions do the same without moving anything,
and those of a whole run can be worked out together, see ``batches``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from fa4gen.emulator.ptx.syntax import Instruction, Register, Sink, Vector
from fa4gen.emulator.translate.batches import Name, is_wall, names_of, registers_of

Halves: TypeAlias = tuple[Register, Register]

_ARITHMETIC: Final = ("add", "sub", "mul", "fma")


def count_mentions(instructions: Iterable[Instruction]) -> Counter[Name]:
    """The number of times that the instructions name each 64-bit register."""
    return Counter(
        name
        for one in instructions
        for operand in one.operands
        for name in registers_of(operand)
        if name[0] == "d"
    )


@dataclass(slots=True)
class _Pack:
    """``mov.b64 d, {low, high}`` at a place of the run; ``replaced``: uses that are gone."""

    at: int
    halves: Halves
    replaced: int = 0


@dataclass(slots=True)
class _Operation:
    """Packed arithmetic at a place of the run, and the packs of its operands."""

    at: int
    sources: list[_Pack]


@dataclass(slots=True)
class _Scan:
    """The state of a scan: packs and operations by the register that they write.

    written  the last instruction that writes a register
    touched  the last that reads or writes it, through a pack as well
    parts    the replacement of an instruction
    """

    packs: dict[Name, _Pack] = field(default_factory=dict)
    operations: dict[Name, _Operation] = field(default_factory=dict)
    written: dict[Name, int] = field(default_factory=dict)
    touched: dict[Name, int] = field(default_factory=dict)
    parts: dict[int, list[Instruction]] = field(default_factory=dict)


def take_apart(run: Sequence[Instruction], mentions: Mapping[Name, int]) -> list[Instruction]:
    """The run with packed arithmetic split, where operands are packed and results unpacked in it.

    ``mentions`` are those of the whole function: a 64-bit register that nothing else names need not
    be written. Moves that unpack anything else become one for each part.
    """
    scan = _Scan()
    packs: list[tuple[Name, _Pack]] = []
    for at, one in enumerate(run):
        if is_wall(one):
            scan.packs.clear()
            scan.operations.clear()
        target, halves = _unpacked(one)
        if target is not None and halves is not None:
            scan.parts[at] = _unpack(scan, run, at, target, halves, mentions)
        operation = _operation(scan, at, one)
        reads, writes = names_of(one)
        for name in writes:
            scan.written[name] = at
            scan.packs.pop(name, None)
            scan.operations.pop(name, None)
        for name in reads | writes:
            scan.touched[name] = at
        if operation is not None:
            scan.operations[_name(one.operands[0])] = operation
        target, halves = _packed(one)
        if target is not None and halves is not None:
            packs.append((target, _Pack(at, halves)))
            scan.packs[target] = packs[-1][1]
    for name, pack in packs:
        if pack.replaced == mentions[name] - 1:
            scan.parts[pack.at] = []
    return [part for at, one in enumerate(run) for part in scan.parts.get(at, (one,))]


def _unpack(
    scan: _Scan, run: Sequence[Instruction], at: int, target: Name, halves: Halves,
    mentions: Mapping[Name, int],
) -> list[Instruction]:  # fmt: skip
    """Take the operation apart whose result is unpacked; else unpack half by half."""
    operation = scan.operations.get(target)
    if operation is not None and mentions[target] == 2:
        low, high = halves
        sources = [pack.halves for pack in operation.sources]
        free = all(scan.touched.get(_name(half), -1) <= operation.at for half in halves)
        if free and low != high and all(low != source[1] for source in sources):
            for pack in operation.sources:
                pack.replaced += 1
            scan.parts[operation.at] = [
                _plain(run[operation.at], half, [source[place] for source in sources])
                for place, half in enumerate(halves)
            ]
            return []
    one = run[at]
    sink = Sink()
    return [
        replace(one, operands=(Vector((halves[0], sink)), one.operands[1])),
        replace(one, operands=(Vector((sink, halves[1])), one.operands[1])),
    ]


def _plain(one: Instruction, target: Register, sources: list[Register]) -> Instruction:
    """The instruction for one half."""
    return replace(
        one,
        text=one.text.removesuffix("x2"),
        modifiers=(*one.modifiers[:-1], "f32"),
        operands=(target, *sources),
    )


def _operation(scan: _Scan, at: int, one: Instruction) -> _Operation | None:
    """Packed arithmetic on registers that have been packed and whose halves are as they were."""
    if one.opcode not in _ARITHMETIC or one.modifiers[-1:] != ("f32x2",) or one.guard is not None:
        return None
    sources = []
    for operand in one.operands:
        if not isinstance(operand, Register):
            return None
    for name in map(_name, one.operands[1:]):
        pack = scan.packs.get(name)
        if pack is None or any(scan.written.get(_name(h), -1) > pack.at for h in pack.halves):
            return None
        sources.append(pack)
    for pack in sources:
        scan.touched.update((_name(half), at) for half in pack.halves)
    return _Operation(at, sources)


def _packed(one: Instruction) -> tuple[Name | None, Halves | None]:
    """The register that ``mov.b64`` packs, and its halves."""
    if one.text != "mov.b64" or one.guard is not None:
        return None, None
    target, source = one.operands
    if not isinstance(target, Register) or not isinstance(source, Vector):
        return None, None
    return _name(target), _halves(source)


def _unpacked(one: Instruction) -> tuple[Name | None, Halves | None]:
    """The register that ``mov.b64`` unpacks, and where to."""
    if one.text != "mov.b64" or one.guard is not None:
        return None, None
    target, source = one.operands
    if not isinstance(source, Register) or not isinstance(target, Vector):
        return None, None
    return _name(source), _halves(target)


def _halves(vector: Vector) -> Halves | None:
    """Two 32-bit registers."""
    if len(vector.items) != 2:
        return None
    low, high = vector.items
    if not isinstance(low, Register) or not isinstance(high, Register):
        return None
    return (low, high) if low.cls == high.cls == "r" else None


def _name(register: object) -> Name:
    assert isinstance(register, Register)
    return register.cls, register.index
