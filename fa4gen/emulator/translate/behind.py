"""The sides of branches by which every way to an instruction leads."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.emulator.coverage.points import Branch
    from fa4gen.emulator.translate.steps import Step


class Behind:
    """The dominators of steps, computed at their first use.

    ``goals`` are the successors of each step; of a branch the taken one comes first.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        goals: Sequence[tuple[int, ...]],
        branches: Mapping[int, Branch],
    ) -> None:
        self._starts = [step.start for step in steps]
        self._goals = goals
        self._branches = branches
        self._known: dict[int, tuple[tuple[int, bool], ...]] = {}

    def sides(self, index: int) -> tuple[tuple[int, bool], ...]:
        """Return the sides that lead to an instruction, the nearest first: PTX line, guard holds.

        A side counts where its step is entered from that branch alone, and from behind it.
        """
        # a step that has only a guard begins where the next one does
        step = bisect_right(self._starts, index) - 1
        if step not in self._known:
            self._known[step] = self._sides_of(step)
        return self._known[step]

    def _sides_of(self, step: int) -> tuple[tuple[int, bool], ...]:
        found = []
        while step > 0:
            above = self._above[step]
            if above < 0:
                break
            branch, sides = self._branches.get(above), self._goals[above]
            if branch is not None and sides.count(step) == 1 and self._is_entered_from(above, step):
                found.append((branch.guard.line, sides[0] == step))
            step = above
        return tuple(found)

    def _is_entered_from(self, above: int, step: int) -> bool:
        """Return whether all other ways to a step come from itself, as in a loop."""
        return all(one == above or self._leads(step, one) for one in self._before[step])

    def _leads(self, step: int, to: int) -> bool:
        """Return whether every way to the step ``to`` leads by ``step``."""
        while to not in (step, 0):
            to = self._above[to]
        return to == step

    @cached_property
    def _before(self) -> list[list[int]]:
        """Return the steps that lead to each step, of those that can be reached."""
        before: list[list[int]] = [[] for _ in self._goals]
        for step in self._order:
            for target in self._goals[step]:
                before[target].append(step)
        return before

    @cached_property
    def _above(self) -> list[int]:
        """Return the nearest step that every way to a step leads by; -1 for those without."""
        order = self._order
        rank = {step: number for number, step in enumerate(order)}
        above = [-1] * len(self._goals)
        above[0] = 0
        changed = True
        while changed:
            changed = False
            for step in order[1:]:
                nearest = -1
                for one in self._before[step]:
                    if above[one] >= 0:
                        nearest = one if nearest < 0 else _common(one, nearest, above, rank)
                if nearest != above[step]:
                    above[step] = nearest
                    changed = True
        return above

    @cached_property
    def _order(self) -> list[int]:
        """Return the steps that can be reached, in reverse postorder."""
        done: list[int] = []
        seen = {0}
        stack = [(0, iter(self._goals[0]))]
        while stack:
            step, targets = stack[-1]
            target = next((one for one in targets if one not in seen), None)
            if target is None:
                done.append(step)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(self._goals[target])))
        return done[::-1]


def _common(a: int, b: int, above: Sequence[int], rank: Mapping[int, int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = above[a]
        while rank[b] > rank[a]:
            b = above[b]
    return a
