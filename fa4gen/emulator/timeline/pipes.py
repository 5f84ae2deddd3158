"""The cost model's time of warps for straight runs of instructions, side by side.

A run is cut into short pieces. A piece takes as long as its slowest resource: the pipes of the
warp's quarter of the SM, as far as other warps leave them free, or the chain of its dependences as
an ideal compiler would order it. Of two warps the one that is simulated first goes first.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.ptx.syntax import Address, Pair, Register, Vector
from fa4gen.emulator.timeline.costs import PIPES, instruction_cost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.emulator.ptx.syntax import Instruction, Operand

SUBPARTITIONS: Final = 4
"""Quarters of an SM; warp n is of quarter n % 4."""
_BIN: Final = 32.0
_PIECE_SLOTS: Final = 48
_EXACT: Final = 1e-6
_PER_SM: Final = ("shared",)
_MEMORY: Final = ("ld", "st", "ldmatrix", "stmatrix")


@dataclass(frozen=True, slots=True)
class Piece:
    """A few instructions in a row of one warp.

    ``use`` of each of PIPES in cycles; ``least``: their time with all pipes free; ``kind`` is the
    kind of most of them: ``exp2``, ``compute``, ``memory`` or ``issue``.
    """

    use: tuple[float, ...]
    least: float
    kind: str
    first: Instruction


def _registers(operand: Operand) -> Iterator[tuple[str, int]]:
    if isinstance(operand, Register):
        yield operand.cls, operand.index
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)
    elif isinstance(operand, Address):
        yield from _registers(operand.base)


def _kind(run: Sequence[Instruction], use: Sequence[float], hold: float) -> str:
    if hold >= max(*use[:3], use[3] + 1):
        return "issue"
    if use[PIPES.index("exp2")] > max(use[:3]):
        return "exp2"
    memory = sum(one.opcode in _MEMORY for one in run)
    return "memory" if 2 * memory > len(run) else "compute"


def cut(code: Sequence[Instruction], start: int, stop: int, sm: int) -> tuple[Piece, ...]:
    """The pieces of the instructions ``start`` to ``stop``."""
    pieces: list[Piece] = []
    ready: dict[tuple[str, int], float] = {}
    now, first = 0.0, start
    use, last, hold = [0.0] * len(PIPES), 0.0, 0.0
    for index in range(start, stop):
        one = code[index]
        cost = instruction_cost(one, sm)
        use = [sum(pair) for pair in zip(use, cost.use, strict=True)]
        begin = now + hold
        stores = not one.operands or isinstance(one.operands[0], Address)
        sources = one.operands if stores else one.operands[1:]
        for operand in sources:
            for register in _registers(operand):
                begin = max(begin, ready.get(register, 0.0))
        if one.guard is not None:
            begin = max(begin, ready.get((one.guard.cls, one.guard.index), 0.0))
        if not stores:
            for register in _registers(one.operands[0]):
                ready[register] = begin + cost.latency
        last, hold = max(last, begin - now), hold + cost.hold
        if use[0] >= _PIECE_SLOTS or index == stop - 1:
            length = max(*use, last, hold)
            kind = _kind(code[first : index + 1], use, hold)
            pieces.append(Piece(tuple(use), length, kind, code[first]))
            now, first = now + length, index + 1
            use, last, hold = [0.0] * len(PIPES), 0.0, 0.0
    return tuple(piece for piece in pieces if piece.least)


class Units:
    """The free times of units that do one thing after the other, such as the tensor core.

    Warps ask for them in an order that is only nearly that of time, so an operation may take a gap
    that was left before it; those of one ``queue`` keep their order.
    """

    def __init__(self) -> None:
        self._busy: dict[Hashable, list[tuple[float, float]]] = defaultdict(list)
        self._last: dict[Hashable, float] = {}

    def take(self, units: Sequence[Hashable], queue: Hashable, now: float, length: float) -> float:
        """Take all ``units`` for ``length`` cycles as soon as they are free; when that begins."""
        begin = max(now, self._last.get(queue, 0.0))
        while True:
            later = max(self._free(unit, begin, length) for unit in units)
            if later <= begin:
                break
            begin = later
        for unit in units:
            if length:
                insort(self._busy[unit], (begin, begin + length))
        self._last[queue] = begin + length
        return begin

    def _free(self, unit: Hashable, begin: float, length: float) -> float:
        """The first time from ``begin`` on at which a unit is free for so long."""
        busy = self._busy[unit]
        at = max(bisect_right(busy, (begin, float("inf"))) - 1, 0)
        for start, stop in busy[at:]:
            if start >= begin + length - _EXACT:
                break
            begin = max(begin, stop)
        return begin


class Pipes:
    """The use of every pipe in every short stretch of time."""

    def __init__(self) -> None:
        self._used: dict[Hashable, dict[int, float]] = defaultdict(dict)

    def occupy(self, sm: int, warp: int, piece: Piece, begin: float) -> float:
        """Take the pipes for a piece of a warp from ``begin`` on; return the time of its end."""
        wanted = [
            (self._used[sm, name if name in _PER_SM else (warp % SUBPARTITIONS, name)], amount)
            for name, amount in zip(PIPES, piece.use, strict=True)
            if amount
        ]
        now, left = begin, 1.0
        while True:
            number = int(now // _BIN)
            span = (number + 1) * _BIN - now
            share = min(left, span / piece.least)
            for used, amount in wanted:
                share = min(share, max(_BIN - used.get(number, 0.0), 0.0) / amount)
            for used, amount in wanted:
                used[number] = used.get(number, 0.0) + share * amount
            left -= share
            if left <= _EXACT:
                return now + min(span, share * piece.least)
            now += span
