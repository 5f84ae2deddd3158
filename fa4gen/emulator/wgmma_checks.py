"""Registers of wgmma in flight: who touches them between issue and the wait that retires them.

The hardware owns accumulators and register operands until ``wgmma.wait_group`` retires the group.
PTX that a compiler wrote may still copy accumulators in flight (``mov`` between the names that an
inline asm statement has for them before and after); ptxas gives both names the same register. Such
copies are transparent here, and products whose accumulators are copied in flight are worked out
early, so that the copies hold the right values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fa4gen.emulator.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Instruction,
    Label,
    LabelTable,
    Operand,
    Pair,
    Register,
    Vector,
)

# No kernel keeps more groups in flight; a walk that comes this far has lost the wait.
_MAX_GROUPS = 8


@dataclass(slots=True)
class Flights:
    """What a walk over an entry found.

    ``copied`` holds the products whose registers are copied while in flight; ``wrong`` what is an
    error: (kind, message, instruction).
    """

    copied: set[int] = field(default_factory=set)
    wrong: list[tuple[str, str, Instruction]] = field(default_factory=list)


def is_product(instruction: Instruction) -> bool:
    """Whether an instruction is a wgmma.mma_async."""
    return instruction.opcode == "wgmma" and instruction.modifiers[:1] == ("mma_async",)


def registers_of(operand: Operand) -> Iterator[int]:
    """The 32-bit registers that an operand names."""
    if isinstance(operand, Register):
        if operand.cls == "r":
            yield operand.index
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from registers_of(item)
    elif isinstance(operand, Pair):
        yield from registers_of(operand.first)
        yield from registers_of(operand.second)
    elif isinstance(operand, Address):
        yield from registers_of(operand.base)


class _Graph:
    """Successors of the instructions of an entry, and the registers they name."""

    def __init__(self, function: Function) -> None:
        self.code = function.instructions
        self.used = [
            frozenset(r for operand in one.operands for r in registers_of(operand))
            for one in self.code
        ]

    def successors(self, index: int) -> tuple[int, ...]:
        one = self.code[index]
        behind = (index + 1,) if index + 1 < len(self.code) else ()
        if one.opcode in ("ret", "exit", "trap"):
            return behind if one.guard is not None else ()
        targets: tuple[int, ...] = ()
        for operand in one.operands:
            if isinstance(operand, Label):
                targets = (operand.target,)
            elif isinstance(operand, LabelTable):
                targets = operand.targets
        if not targets:
            return behind
        conditional = one.opcode == "bra" and one.guard is not None
        return tuple(t for t in targets if t < len(self.code)) + (behind if conditional else ())


def find_flights(function: Function) -> Flights:
    """Follow every product to the wait that retires it."""
    found = Flights()
    products = [i for i, one in enumerate(function.instructions) if is_product(one)]
    if not products:
        return found
    graph = _Graph(function)
    for index in products:
        _follow(graph, index, found)
    _unfenced(graph, found)
    return found


def check_registers(function: Function) -> list[tuple[str, str, Instruction]]:
    """The errors alone: (kind, message, instruction)."""
    return find_flights(function).wrong


def _follow(graph: _Graph, start: int, found: Flights) -> None:
    product = graph.code[start]
    accumulators = frozenset(registers_of(product.operands[0]))
    operand = frozenset(registers_of(product.operands[1]))
    seen: set[tuple[int, int]] = set()
    todo = [(index, 0) for index in graph.successors(start)]
    reported = False
    while todo:
        index, groups = todo.pop()
        if (index, groups) in seen:
            continue
        seen.add((index, groups))
        one = graph.code[index]
        if one.opcode == "wgmma":
            if one.modifiers[0] == "commit_group":
                groups = min(groups + 1, _MAX_GROUPS + 1)
            elif one.modifiers[0] == "wait_group":
                newest = one.operands[0]
                if isinstance(newest, Immediate) and 0 < groups > newest.bits:
                    continue
            elif is_product(one):
                if frozenset(registers_of(one.operands[1])) & accumulators and not reported:
                    reported = True
                    found.wrong.append(_touch(product, one, "reads"))
                if frozenset(registers_of(one.operands[0])) == accumulators:
                    # a chain: the next product stands for this one
                    continue
        elif graph.used[index] & accumulators:
            if one.opcode == "mov":
                found.copied.add(start)
            elif not reported:
                reported = True
                found.wrong.append(_touch(product, one, "touches"))
        elif operand and one.opcode != "mov" and operand & frozenset(
            registers_of(one.operands[0]) if one.operands and one.opcode != "st" else ()
        ) and not reported:  # fmt: skip
            reported = True
            found.wrong.append(_touch(product, one, "writes to the operand of"))
        todo.extend((behind, groups) for behind in graph.successors(index))


def _touch(product: Instruction, one: Instruction, what: str) -> tuple[str, str, Instruction]:
    return (
        "wgmma-registers",
        f"{one.text} {what} registers of the wgmma issued at {product.where} before a "
        "wgmma.wait_group has retired it",
        one,
    )


def _unfenced(graph: _Graph, found: Flights) -> None:
    """Products that can be reached from the entry without passing a wgmma.fence."""
    seen: set[int] = set()
    todo = [0] if graph.code else []
    while todo:
        index = todo.pop()
        if index in seen:
            continue
        seen.add(index)
        one = graph.code[index]
        if one.opcode == "wgmma" and one.modifiers[0] == "fence":
            continue
        if is_product(one):
            found.wrong.append(
                (
                    "missing-wgmma-fence",
                    "no wgmma.fence orders the registers of this first wgmma after what wrote them",
                    one,
                )
            )
            continue
        todo.extend(graph.successors(index))
