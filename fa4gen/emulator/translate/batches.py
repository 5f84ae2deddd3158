"""Many equal operations on different registers, done at once.

Unrolled kernels repeat an operation for every element that a thread holds. Inside a straight run of
instructions such operations are gathered: those that depend on nothing still to come are worked out
in one NumPy call over a block of registers. The order of everything else stays as written.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from fa4gen.emulator.ptx.syntax import (
    Address,
    Instruction,
    NotPredicate,
    Operand,
    Pair,
    Register,
    Special,
    Vector,
)
from fa4gen.emulator.ptx.types import CLASS_BITS, bits_of, view_of
from fa4gen.emulator.translate.emit import Elementwise, Emitter

# Opcodes that compute registers from registers and do nothing else; the first operand is written.
_PURE: Final = frozenset((
    "abs", "add", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign", "cos",
    "cvt", "cvta", "div", "dp2a", "dp4a", "ex2", "fma", "fns", "lg2", "lop3", "mad", "max", "min",
    "mov", "mul", "mul24", "mad24", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt",
    "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "szext",
    "tanh", "testp", "xor",
))  # fmt: skip
# Runs and batches below these sizes are not worth the trouble.
_MIN_RUN: Final = 24
_MIN_BATCH: Final = 4
# Instructions that end the life of registers that they do not name.
_WALLS: Final = ("wgmma.wait_group", "wgmma.fence")

Name: TypeAlias = tuple[str, int]
Translate: TypeAlias = Callable[[Instruction, Emitter], None]


@dataclass(frozen=True, slots=True)
class Batch:
    """Instructions that do the same to different registers."""

    members: tuple[Instruction, ...]
    operations: tuple[Elementwise, ...]


def plan(
    run: Sequence[Instruction], translate: Translate, emitter: Emitter
) -> list[Instruction | Batch]:
    """Order a straight run: instructions, and batches of them."""
    if len(run) < _MIN_RUN:
        return list(run)
    result: list[Instruction | Batch] = []
    segment: list[Instruction] = []
    for one in run:
        segment.append(one)
        if is_wall(one):
            result += _order(segment, translate, emitter)
            segment = []
    return result + _order(segment, translate, emitter)


def _order(
    run: list[Instruction], translate: Translate, emitter: Emitter
) -> list[Instruction | Batch]:
    if len(run) < _MIN_RUN:
        return list(run)
    recorded = [_record(one, translate, emitter) if is_pure(one) else None for one in run]
    if sum(one is not None for one in recorded) < _MIN_RUN // 2:
        return list(run)
    followers, missing = _dependences(run)
    plain: list[int] = []
    groups: dict[Any, list[int]] = defaultdict(list)

    def release(index: int) -> None:
        operation = recorded[index]
        if operation is None:
            plain.append(index)
        else:
            groups[_key(run[index], operation)].append(index)

    for index, count in enumerate(missing):
        if not count:
            release(index)
    result: list[Instruction | Batch] = []
    while plain or groups:
        if plain:
            plain.sort(reverse=True)
            done = [plain.pop()]
            result.append(run[done[0]])
        else:
            key = max(groups, key=lambda one: (len(groups[one]), -groups[one][0]))
            done = sorted(groups.pop(key))
            if len(done) < _MIN_BATCH:
                result += [run[index] for index in done]
            else:
                operations = [recorded[index] for index in done]
                result.append(
                    Batch(
                        tuple(run[index] for index in done),
                        _arranged([one for one in operations if one is not None]),
                    )
                )
        for index in done:
            for later in followers[index]:
                missing[later] -= 1
                if not missing[later]:
                    release(later)
    return result


def _arranged(operations: list[Elementwise]) -> tuple[Elementwise, ...]:
    """The operations in the order in which most of their registers follow each other."""
    columns = [
        [operand.index if isinstance(operand, Register) else -1 for operand in column]
        for column in zip(*((one.destination, *one.operands) for one in operations), strict=True)
    ]
    best, most = list(range(len(operations))), -1
    for column in columns:
        order = sorted(range(len(operations)), key=column.__getitem__)
        count = sum(_consecutive([other[place] for place in order]) for other in columns)
        if count > most:
            best, most = order, count
    return tuple(operations[place] for place in best)


def is_wall(instruction: Instruction) -> bool:
    """Whether an instruction ends the life of registers that it does not name."""
    return instruction.text.startswith(_WALLS)


def is_pure(instruction: Instruction) -> bool:
    """Whether an instruction is nothing but arithmetic on the registers that it names."""
    if instruction.opcode not in _PURE or "cc" in instruction.modifiers:
        return False
    return not any(
        isinstance(operand, Special) and "clock" in operand.name for operand in instruction.operands
    ) and not any("timer" in str(operand) for operand in instruction.operands)


def _record(one: Instruction, translate: Translate, emitter: Emitter) -> Elementwise | None:
    """The one operation that an instruction consists of, if it is one that can be batched."""
    if one.guard is not None:
        return None
    emitter.record, lines = [], len(emitter.lines)
    translate(one, emitter)
    recorded, emitter.record = emitter.record, None
    emitted = len(emitter.lines) > lines
    del emitter.lines[lines:]
    if emitted or len(recorded) != 1:
        return None
    operation = recorded[0]
    registers = [(operation.destination, operation.kind)]
    registers += list(zip(operation.operands, operation.kinds, strict=True))
    for operand, kind in registers:
        if isinstance(operand, Register):
            if kind == "b128" or _width(kind) != CLASS_BITS[operand.cls]:
                return None
        elif isinstance(operand, (Special, NotPredicate, Vector)):
            return None
    if not isinstance(operation.destination, Register):
        return None
    if not any(isinstance(operand, Register) for operand in operation.operands):
        return None
    return operation


def _width(kind: str) -> int:
    return 1 if kind == "pred" else bits_of(kind)


def _key(one: Instruction, operation: Elementwise) -> Any:
    """The common part of a batch's members: all constants, those inside the function too."""
    shape = tuple(
        "register" if isinstance(operand, Register) else operand
        for operand in (*one.operands, *operation.operands)
    )
    return one.text, operation.kind, operation.kinds, shape


def _dependences(run: list[Instruction]) -> tuple[list[list[int]], list[int]]:
    """For each instruction: the ones that wait for it, and the number that it waits for."""
    followers: list[list[int]] = [[] for _ in run]
    missing = [0] * len(run)
    writer: dict[Name, int] = {}
    readers: dict[Name, list[int]] = defaultdict(list)
    last_fixed = -1
    for index, one in enumerate(run):
        before: set[int] = set()
        reads, writes = names_of(one)
        for name in reads:
            if name in writer:
                before.add(writer[name])
        for name in writes:
            if name in writer:
                before.add(writer[name])
            before.update(readers.pop(name, ()))
        if not is_pure(one):
            if last_fixed >= 0:
                before.add(last_fixed)
            last_fixed = index
        for name in reads:
            readers[name].append(index)
        for name in writes:
            writer[name] = index
        before.discard(index)
        for earlier in before:
            followers[earlier].append(index)
        missing[index] = len(before)
    return followers, missing


def names_of(one: Instruction) -> tuple[set[Name], set[Name]]:
    """Registers read and written; an instruction that is not pure may do both to all it names."""
    named = [set(registers_of(operand)) for operand in one.operands]
    everything = set().union(*named) if named else set()
    if one.guard is not None:
        guard = {(one.guard.cls, one.guard.index)}
        if is_pure(one):
            return everything | guard, named[0]
        return everything | guard, everything
    if is_pure(one):
        return set().union(*named[1:]), named[0]
    return everything, everything


def registers_of(operand: Operand) -> Iterator[Name]:
    """The registers that an operand names, as often as it does."""
    if isinstance(operand, Register):
        yield operand.cls, operand.index
    elif isinstance(operand, NotPredicate):
        yield operand.register.cls, operand.register.index
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from registers_of(item)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)
    elif isinstance(operand, Address):
        yield from registers_of(operand.base)
        if operand.coordinates is not None:
            yield from registers_of(operand.coordinates)


def emit(batch: Batch, e: Emitter) -> None:
    """The statements of a batch, for a warpgroup all of whose lanes take part."""
    first = batch.operations[0]
    count = len(batch.operations)
    texts = []
    for position, kind in enumerate(first.kinds):
        operands = [one.operands[position] for one in batch.operations]
        head = operands[0]
        if not isinstance(head, Register):
            texts.append(e.get(head, kind))
            continue
        indices = [one.index for one in operands if isinstance(one, Register)]
        if len(set(indices)) == 1:
            texts.append(f"{e.name(_repeat)}({e.get(head, kind)}, {count})")
        else:
            texts.append(f"{_rows(e, kind, indices)}.reshape(-1)")
    targets = [
        one.destination.index for one in batch.operations if isinstance(one.destination, Register)
    ]
    target = _rows(e, first.kind, targets, write=True)
    function = e.name(first.function)
    if first.into and _consecutive(targets):
        e.line(f"{function}({', '.join(texts)}, {target}.reshape(-1))")
        return
    last = ", None" if first.into else ""
    e.line(f"{target} = {function}({', '.join(texts)}{last}).reshape({count}, -1)")


def _repeat(row: Any, count: int) -> Any:
    """A row as often as a batch has members."""
    return np.broadcast_to(row, (count, len(row))).reshape(-1)


def _consecutive(indices: list[int]) -> bool:
    return all(b - a == 1 for a, b in itertools.pairwise(indices))


def _rows(e: Emitter, kind: str, indices: list[int], write: bool = False) -> str:
    """An expression for rows of a block of registers: (count, lanes)."""
    block = f"g.rows({view_of(kind)!r})"
    if _consecutive(indices):
        return f"{block}[{indices[0]}:{indices[-1] + 1}]"
    names = e.name(np.array(indices))
    return f"{block}[{names}]" if write else f"{block}.take({names}, 0)"
