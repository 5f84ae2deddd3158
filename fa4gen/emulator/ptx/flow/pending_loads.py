"""Loads that may still be under way when a thread releases the memory that they read.

A load has been performed once an instruction that needs its value has executed. Instructions that
only compute do not show it: ptxas moves them past a release as it likes (on an H200 the products
of values from ``ldmatrix``, before the arrival in PTX, came after it). So a load counts as complete
where a value computed from it goes into an instruction that stays before the release, such as a
store or a branch, or into the release itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from fa4gen.emulator.ptx.syntax import (
    Address,
    Label,
    LabelTable,
    NotPredicate,
    Pair,
    Register,
    Vector,
)

if TYPE_CHECKING:
    from fa4gen.emulator.ptx.syntax import Function, Instruction, Operand

_SHARED: Final = frozenset(("shared", "shared::cta", "shared::cluster"))
_OTHER_SPACES: Final = frozenset(("global", "local", "const", "param", "param::entry"))
_PRIVATE: Final = _OTHER_SPACES - {"global"}
# Instructions that neither the compiler nor the hardware moves past a release after them.
_ORDERED: Final = frozenset((
    "st", "red", "atom", "multimem", "stmatrix", "cp", "wgmma", "tcgen05", "mbarrier", "bar",
    "barrier", "bra", "brx", "ret", "exit", "trap", "ld", "ldmatrix",
))  # fmt: skip
_NO_RESULT: Final = frozenset((
    "bar", "barrier", "brx", "nanosleep", "setmaxnreg", "bra", "ret", "exit",
))  # fmt: skip
_ENDS: Final = frozenset(("ret", "exit", "trap"))

Key: TypeAlias = tuple[str, int]
State: TypeAlias = "tuple[int, dict[Key, int]]"
"""Loads that are pending, as bits; of each register the pending loads that it was computed from."""


class PendingLoads:
    """For an entry: ``loads``, and which of them are pending at each instruction."""

    def __init__(self, function: Function) -> None:
        self._code = function.instructions
        read = {key for one in self._code for key in _split(one)[0]}
        self.loads = [
            one
            for one in self._code
            if is_load(one) and any(key in read for key in registers_of(one.operands[0]))
        ]
        self._bit = {id(one): 1 << number for number, one in enumerate(self.loads)}
        self._tensor = sum(self._bit[id(one)] for one in self.loads if one.opcode == "tcgen05")
        self._open: dict[int, int] = {}
        if self.loads:
            self._flow()

    def any_open(self, release: Instruction) -> bool:
        """Whether some load may be under way when a thread executes ``release``."""
        return self._open.get(id(release), 0) != 0

    def is_open(self, load: Instruction, release: Instruction | None) -> bool:
        """Whether a load may be under way when its thread executes ``release``.

        It is open where the release is not known. A load whose value is never used is not followed.
        """
        bit = self._bit.get(id(load), 0)
        return bit != 0 and (release is None or self._open.get(id(release), 0) & bit != 0)

    def _flow(self) -> None:
        starts = sorted({0} | {target for one in self._code for target in _targets(one)} | {
            index + 1 for index, one in enumerate(self._code)
            if one.opcode in _ENDS or one.opcode in ("bra", "brx")
        })  # fmt: skip
        starts = [start for start in starts if start < len(self._code)]
        stops = dict(zip(starts, [*starts[1:], len(self._code)], strict=True))
        states: dict[int, State] = {0: (0, {})}
        todo = [0]
        while todo:
            start = todo.pop()
            pending, sources = states[start]
            after = self._block(start, stops[start], pending, dict(sources))
            for follower in self._followers(stops[start] - 1):
                known = states.get(follower)
                joined = after if known is None else _join(known, after)
                if joined != known:
                    states[follower] = joined
                    if follower not in todo:
                        todo.append(follower)

    def _followers(self, last: int) -> list[int]:
        one = self._code[last]
        result = [target for target in _targets(one) if target < len(self._code)]
        leaves = one.opcode in _ENDS or one.opcode in ("bra", "brx")
        if (not leaves or one.guard is not None) and last + 1 < len(self._code):
            result.append(last + 1)
        return result

    def _block(self, start: int, stop: int, pending: int, sources: dict[Key, int]) -> State:
        for one in self._code[start:stop]:
            bit = self._bit.get(id(one), 0)
            if not pending and not bit:
                continue
            read, written = _split(one)
            fed = 0
            for key in read:
                fed |= sources.get(key, 0)
            fed &= pending
            if pending & ~fed:
                self._open[id(one)] = self._open.get(id(one), 0) | (pending & ~fed)
            if one.opcode in _ORDERED and not _PRIVATE & set(one.modifiers):
                pending &= ~fed
            if one.text.startswith("tcgen05.wait::ld"):
                pending &= ~self._tensor
            if bit:
                pending |= bit
                sources = {key: loads & ~bit for key, loads in sources.items() if loads & ~bit}
                fed = bit
            for key in written:
                if fed:
                    sources[key] = fed
                else:
                    sources.pop(key, None)
        return pending, {key: on for key, loads in sources.items() if (on := loads & pending)}


def is_load(one: Instruction) -> bool:
    """Whether an instruction loads from shared (or perhaps shared) or tensor memory."""
    if one.opcode == "ld":
        return bool(_SHARED & set(one.modifiers)) or not _OTHER_SPACES & set(one.modifiers)
    return one.opcode == "ldmatrix" or one.text.startswith(("tcgen05.ld", "wmma.load"))


def registers_of(operand: Operand) -> Iterator[Key]:
    """All registers that an operand names."""
    if isinstance(operand, Register):
        yield operand.cls, operand.index
    elif isinstance(operand, NotPredicate):
        yield from registers_of(operand.register)
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


def _split(one: Instruction) -> tuple[list[Key], list[Key]]:
    """Registers read, the guard among them, and written."""
    read = [] if one.guard is None else list(registers_of(one.guard))
    if not one.operands:
        return read, []
    first, *others = one.operands
    read += [key for operand in others for key in registers_of(operand)]
    named = list(registers_of(first))
    if isinstance(first, Address) or one.opcode in _NO_RESULT:
        return read + named, []
    if one.opcode == "wgmma":
        read += named
    return read, named


def _targets(one: Instruction) -> tuple[int, ...]:
    for operand in one.operands:
        if isinstance(operand, Label):
            return (operand.target,)
        if isinstance(operand, LabelTable):
            return operand.targets
    return ()


def _join(one: State, two: State) -> State:
    """Either may have happened: a register counts where each has it or the load is not pending."""
    (pending, sources), (others, more) = one, two
    joint = pending | others
    result = {}
    for key in sources.keys() | more.keys():
        mine, theirs = sources.get(key, 0), more.get(key, 0)
        loads = joint & (mine | ~pending) & (theirs | ~others)
        if loads:
            result[key] = loads
    return joint, result
