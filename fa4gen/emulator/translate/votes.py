"""Branches that a warp takes as one, because of a vote: ``if (__any_sync(mask, far)) rescale();``.

Whether a side was seen says little of them: lazy work is worth a count of how often it was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fa4gen.emulator.coverage.points import Vote
from fa4gen.emulator.ptx.syntax import NotPredicate, Register

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.emulator.ptx.syntax import Instruction
    from fa4gen.emulator.translate.steps import Step

# Instructions between a vote and its branch: none, a negation, or a further condition.
_KEEPS: Final = ("and", "or", "mov")


def find_votes(steps: Sequence[Step], instructions: Sequence[Instruction]) -> tuple[Vote, ...]:
    """Branches that follow from a ``vote.sync.any``, in the order of the PTX.

    Predicates that are written at several places are not followed.
    """
    votes = [one for one in instructions if one.text.startswith("vote.sync.any.pred")]
    if not votes:
        return ()
    writes: dict[Register, int] = {}
    for one in instructions:
        if one.operands and isinstance(one.operands[0], Register):
            writes[one.operands[0]] = writes.get(one.operands[0], 0) + 1
    found = []
    for site in votes:
        outcome = site.operands[0]
        assert isinstance(outcome, Register)
        if writes[outcome] == 1:
            follows = _follow(outcome, instructions, writes)
            found += [
                Vote(
                    step.index,
                    site,
                    step.end,
                    outcome.index,
                    follows[step.end.guard] is not step.end.guard_negated,
                )
                for step in steps
                if step.end is not None
                and step.end.opcode == "bra"
                and step.end.guard is not None
                and step.end.guard in follows
            ]
    return tuple(sorted(found, key=lambda one: one.step))


def _follow(
    outcome: Register, instructions: Sequence[Instruction], writes: dict[Register, int]
) -> dict[Register, bool]:
    """Predicates that follow from ``outcome``, and whether they are its negation."""
    follows = {outcome: False}
    for one in instructions:
        if one.opcode not in (*_KEEPS, "not") or one.guard is not None or len(one.operands) < 2:
            continue
        to = one.operands[0]
        if isinstance(to, Register) and to not in follows and writes[to] == 1:
            for source, negated in _predicates(one):
                if source in follows:
                    follows[to] = follows[source] is not (negated is not (one.opcode == "not"))
    return follows


def _predicates(instruction: Instruction) -> Iterator[tuple[Register, bool]]:
    for operand in instruction.operands[1:]:
        if isinstance(operand, Register):
            yield operand, False
        elif isinstance(operand, NotPredicate):
            yield operand.register, True
