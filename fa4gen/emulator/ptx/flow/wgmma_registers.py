"""Registers of wgmma in flight: accesses between the issue and the wait that retires it.

The hardware owns accumulators and register operands until ``wgmma.wait_group`` retires the group.
PTX that a compiler wrote may still copy accumulators in flight (``mov`` between the names that an
inline asm statement has for them before and after, or where control flow joins); ptxas gives both
names the same register. nvcc 13 and Triton 3.6 rarely leave such copies (none in this project's
kernels, in CUTLASS-like loops, or in Triton's products and attention), but they are legal. They are
transparent here: a copy stands for its accumulator, and using it in flight is as wrong as using the
accumulator. Products whose accumulators are copied in flight are computed at issue, so that the
copies hold the right values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from fa4gen.emulator.ptx.flow.registers import RegisterFlow, registers_of
from fa4gen.emulator.ptx.flow.wgmma_fences import Wrong, is_product, unfenced
from fa4gen.emulator.ptx.syntax import Immediate, Vector

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Function

# No kernel keeps more groups in flight; a walk that comes this far has lost the wait.
_MAX_GROUPS: Final = 16

Copies: TypeAlias = frozenset[tuple[int, int]]
"""Pairs (register, accumulator of which it is a copy)."""


@dataclass(slots=True)
class Flights:
    """The results of a walk over an entry.

    ``copied`` holds the products whose accumulators are copied while in flight; ``wrong`` the
    errors and ``doubtful`` the cases for review: (kind, message, instruction).
    """

    copied: set[int] = field(default_factory=set)
    wrong: list[Wrong] = field(default_factory=list)
    doubtful: list[Wrong] = field(default_factory=list)


def find_flights(function: Function) -> Flights:
    """Follow every product to the wait that retires it."""
    found = Flights()
    products = [i for i, one in enumerate(function.instructions) if is_product(one)]
    if not products:
        return found
    flow = RegisterFlow(function)
    for index in products:
        _Flight(flow, index, found).follow()
    wrong, found.doubtful = unfenced(flow)
    found.wrong += wrong
    return found


class _Flight:
    """One product in flight: a walk over all that may run before it is retired."""

    def __init__(self, flow: RegisterFlow, start: int, found: Flights) -> None:
        self.flow = flow
        self.start = start
        self.found = found
        self.product = flow.code[start]
        self.order = list(registers_of(self.product.operands[0]))
        self.accumulators = frozenset(self.order)
        operand = self.product.operands[1]
        registers = registers_of(operand) if isinstance(operand, Vector) else ()
        self.operand = frozenset(registers)
        self.reported = False

    def follow(self) -> None:
        """Walk; a place is an instruction and how many groups were committed since the product."""
        places: dict[tuple[int, int], Copies] = {}
        todo: list[tuple[int, int, Copies]] = [
            (index, 0, frozenset()) for index in self.flow.successors[self.start]
        ]
        while todo:
            index, groups, copies = todo.pop()
            known = places.get((index, groups))
            if known is not None and copies <= known:
                continue
            copies = copies if known is None else copies | known
            places[index, groups] = copies
            one = self.flow.code[index]
            if one.opcode == "wgmma":
                kind = one.modifiers[0]
                if kind == "commit_group":
                    groups = min(groups + 1, _MAX_GROUPS)
                elif kind == "wait_group":
                    newest = one.operands[0]
                    if isinstance(newest, Immediate) and groups > max(newest.bits, 0):
                        continue
                elif is_product(one) and self._next_product(index, copies):
                    continue
            elif one.opcode == "mov":
                copies = self._move(index, copies)
            else:
                copies = self._other(index, copies)
            todo.extend((following, groups, copies) for following in self.flow.successors[index])

    def _next_product(self, index: int, copies: Copies) -> bool:
        """Whether another product continues this one's chain, so that it stands for this one."""
        one = self.flow.code[index]
        own = list(registers_of(one.operands[0]))
        if len(own) == len(self.order) and all(
            mine == theirs or (mine, theirs) in copies
            for mine, theirs in zip(own, self.order, strict=True)
        ):
            operand = one.operands[1]
            if isinstance(operand, Vector) and frozenset(registers_of(operand)) & set(own):
                self._report(index, "reads")
            return True
        names = self.accumulators | {copy for copy, _ in copies}
        operands = frozenset(r for part in one.operands[1:] for r in registers_of(part))
        if operands & names:
            self._report(index, "reads")
        elif frozenset(own) & names:
            self._report(index, "adds to some of the")
        return False

    def _move(self, index: int, copies: Copies) -> Copies:
        """Copies after a mov: it renames accumulators, or overwrites them."""
        sources, targets = self.flow.reads[index], self.flow.writes[index]
        origin = (sources & self.accumulators) | {of for copy, of in copies if copy in sources}
        if origin:
            self.found.copied.add(self.start)
        lost = (targets & self.accumulators) - origin
        if lost and not lost <= {of for copy, of in copies if copy not in targets}:
            self._report(index, "overwrites")
        elif lost:
            self.found.copied.add(self.start)
        if not origin and not any(copy in targets for copy, _ in copies):
            return copies
        kept = copies
        if self.flow.code[index].guard is None:
            kept = frozenset(pair for pair in copies if pair[0] not in targets)
        new = targets - self.accumulators
        return kept | {(copy, of) for copy in new for of in origin}

    def _other(self, index: int, copies: Copies) -> Copies:
        reads, writes = self.flow.reads[index], self.flow.writes[index]
        if (reads | writes) & self.accumulators:
            self._report(index, "touches")
        if writes & self.operand:
            self._report(index, "writes to the operand of")
        if not copies:
            return copies
        names = {copy for copy, _ in copies}
        if reads & names:
            self._report(index, "reads a copy of")
        if writes & names and self.flow.code[index].guard is None:
            return frozenset(pair for pair in copies if pair[0] not in writes)
        return copies

    def _report(self, index: int, what: str) -> None:
        if self.reported:
            return
        self.reported = True
        one = self.flow.code[index]
        self.found.wrong.append(
            (
                "wgmma-registers",
                f"{one.text} {what} registers of the wgmma issued at {self.product.position} "
                "before a wgmma.wait_group has retired it",
                one,
            )
        )
