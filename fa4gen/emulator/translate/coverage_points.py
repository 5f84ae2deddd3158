"""The places of a kernel that its coverage counts, found once from its steps.

Code that correct kernels never run is not counted: code from which every way leads to ``trap``, and
the side of a branch that goes there. The failing side of an mbarrier wait is not counted either:
whether a try_wait gives up is the hardware's choice, and only repeats the wait. Nor are jumps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fa4gen.emulator.coverage.points import Branch, Points
from fa4gen.emulator.ptx.syntax import (
    Address,
    Instruction,
    Label,
    LabelTable,
    NotPredicate,
    Operand,
    Pair,
    Register,
    Vector,
)
from fa4gen.emulator.translate.behind import Behind

if TYPE_CHECKING:
    from fa4gen.emulator.translate.steps import Step

# The distance above a branch within which the wait is searched whose outcome it tests.
_NEAR: Final = 12


def find_points(
    steps: Sequence[Step],
    step_at: dict[int, int],
    instructions: Sequence[Instruction],
    choices: Collection[int],
) -> Points:
    """The points of an entry that was cut into ``steps``; ``step_at`` as in ``Code``.

    ``choices`` are the indices of instructions that choose between two sizes.
    """
    goals = [tuple(_ways(step, steps, step_at)) for step in steps]
    doomed = _doomed(steps, goals)
    entered = {step.start for step in steps if step.entered}
    # of loops: where they begin, and the last step that goes back there
    back: dict[int, int] = {}
    for index, targets in enumerate(goals):
        back.update((target, index) for target in targets if target <= index)
    branches: dict[int, Branch] = {}
    for step in steps:
        guard = step.guard or step.end
        # an end without a branch has its guard in a step before
        if guard is not None and guard.guard is not None and (step.guard or guard.opcode == "bra"):
            yes, no = (not doomed[way] for way in goals[step.index])
            again = _fails(guard, step.stop, instructions, entered) if step.end else None
            sides = (yes and again is not True, no and again is not False)
            skips = _skips_loop(goals[step.index], goals, back) if step.end else None
            branches[step.index] = Branch(step.index, guard, sides, skips)
    wanted = _reachable(goals, branches, doomed)
    alive = [
        index
        for step in steps
        if step.index in wanted and step.guard is None
        for index in range(step.start, step.stop + (step.end is not None))
        if not _only_leads_on(instructions[index])
    ]
    return Points(
        tuple(one for one in branches.values() if one.step in wanted),
        tuple(alive),
        Counter(instructions[i].where for i in alive),
        tuple(index for index in alive if index in choices),
        Behind(steps, goals, branches).sides,
    )


def _only_leads_on(one: Instruction) -> bool:
    """Whether an instruction computes nothing: a jump, which the branch to it has a side for."""
    return one.opcode == "bra" and one.guard is None


def _reachable(
    goals: Sequence[tuple[int, ...]],
    branches: Mapping[int, Branch],
    doomed: Sequence[bool],
) -> set[int]:
    """The steps that lanes come to on sides of branches that are expected."""
    found = set[int]()
    todo = [] if doomed[0] else [0]
    while todo:
        step = todo.pop()
        if step not in found:
            found.add(step)
            branch = branches.get(step)
            sides = (True,) * len(goals[step]) if branch is None else branch.expects
            todo += [way for way, side in zip(goals[step], sides, strict=True) if side]
    return {step for step in found if not doomed[step]}


def _ways(step: Step, steps: Sequence[Step], step_at: dict[int, int]) -> Iterator[int]:
    """The successors of lanes: first the one where the guard holds."""
    end, follower = step.end, step.index + 1
    if step.guard is not None:
        yield from (follower, step.skip)
    elif end is None:
        if follower < len(steps):
            yield follower
    elif end.opcode == "bra":
        label = end.operands[0]
        assert isinstance(label, Label)
        yield step_at[label.target]
        if end.guard is not None:
            yield follower
    elif end.opcode == "brx":
        table = end.operands[1]
        assert isinstance(table, LabelTable)
        yield from (step_at[target] for target in table.targets)
    elif end.opcode not in ("ret", "exit", "trap"):
        yield follower


def _doomed(steps: Sequence[Step], goals: Sequence[tuple[int, ...]]) -> list[bool]:
    """For each step, whether all paths from it end in ``trap``."""
    doomed = [step.end is not None and step.end.opcode == "trap" for step in steps]
    changed = any(doomed)
    while changed:
        changed = False
        for index in reversed(range(len(steps))):
            if not doomed[index] and goals[index] and all(doomed[way] for way in goals[index]):
                doomed[index] = changed = True
    return doomed


def _skips_loop(
    sides: tuple[int, ...], goals: Sequence[tuple[int, ...]], back: Mapping[int, int]
) -> bool | None:
    """Whether the side where the guard holds passes by a loop; None if no side does."""
    for enters, passes, skips in ((sides[1], sides[0], True), (sides[0], sides[1], False)):
        step = enters
        for _ in range(_NEAR):
            if step in back:
                if passes > back[step]:
                    return skips
                break
            if len(goals[step]) != 1:
                break
            step = goals[step][0]
    return None


def _fails(
    branch: Instruction, at: int, instructions: Sequence[Instruction], entered: set[int]
) -> bool | None:
    """Whether the branch is taken when a wait right above it fails; None if it tests no wait.

    Follows the predicate back through the instructions that compilers put between: selp, setp, mov,
    not, xor.
    """
    assert branch.guard is not None
    wanted: Register = branch.guard
    fails = branch.guard_negated
    for index in range(at - 1, max(at - _NEAR, -1), -1):
        one = instructions[index]
        if one.operands and wanted in _registers(one.operands[0]):
            if one.text.startswith(("mbarrier.try_wait", "mbarrier.test_wait")):
                return fails
            sources = [r for operand in one.operands[1:] for r in _registers(operand)]
            if len(sources) != 1 or one.opcode not in ("selp", "setp", "mov", "not", "xor"):
                return None
            wanted = sources[0]
            if one.opcode in ("not", "xor") or (one.opcode == "setp" and "eq" in one.modifiers):
                fails = not fails
        if index in entered and not _only_from_above(index, instructions):
            return None
    return None


def _only_from_above(index: int, instructions: Sequence[Instruction]) -> bool:
    """Whether an entered instruction only follows a wait, and no branch leads to it."""
    return index > 0 and instructions[index - 1].text.startswith("mbarrier.")


def _registers(operand: Operand) -> Iterator[Register]:
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, NotPredicate):
        yield operand.register
    elif isinstance(operand, Vector):
        for item in operand.items:
            yield from _registers(item)
    elif isinstance(operand, Pair):
        yield from _registers(operand.first)
        yield from _registers(operand.second)
    elif isinstance(operand, Address) and isinstance(operand.base, Register):
        yield operand.base
