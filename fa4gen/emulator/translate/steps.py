"""An entry cut into steps, and the Python functions generated for them.

A step is a straight run of instructions that lanes enter at its first instruction only. It ends
before a label, before an instruction that lanes of a warp (or warpgroup) execute together, and at
every instruction that may branch or wait; that last one is the step's ``end``. Steps that differ
only by such joint instructions form a chain, run as one function when the lanes are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from fa4gen.emulator.instructions.registry import Translate, find
from fa4gen.emulator.ptx.syntax import Function, Instruction, Label, LabelTable
from fa4gen.emulator.state.lanes import GANG, PARTIAL, WARPS
from fa4gen.emulator.state.layout import Layout
from fa4gen.emulator.translate import batches, packed_f32
from fa4gen.emulator.translate.coverage_points import Points, find_points
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.votes import Vote, find_votes

Run: TypeAlias = Callable[[Any, Any], None]

# Opcodes that end a step and are the scheduler's: those that leave for elsewhere ...
_LEAVES: Final = ("bra", "brx", "ret", "exit", "trap")
# ... and those that may wait, which are executed again when what they wait for may have come.
_WAITS: Final = (
    "bar", "barrier", "mbarrier.try_wait", "mbarrier.test_wait", "nanosleep", "setmaxnreg",
    "tcgen05.alloc",
)  # fmt: skip
# (not these, which begin with the same words)
_NO_WAITS: Final = ("barrier.cluster.arrive", "bar.warp")
# Joint instructions of a whole warpgroup, not of a warp.
_WARPGROUP: Final = ("wgmma",)


def starts_with(instruction: Instruction, words: tuple[str, ...]) -> bool:
    """Whether the opcode begins with one of ``words``, whole components."""
    text = instruction.text + "."
    return any(text.startswith(word + ".") for word in words)


def waits(instruction: Instruction) -> bool:
    """Whether lanes may have to wait at an instruction."""
    return starts_with(instruction, _WAITS) and not starts_with(instruction, _NO_WAITS)


def ends_step(instruction: Instruction) -> bool:
    return starts_with(instruction, _LEAVES) or waits(instruction)


def joint_level(instruction: Instruction) -> int:
    """Which lanes execute an instruction together: none in particular, a warp, a warpgroup."""
    if starts_with(instruction, _WARPGROUP):
        return GANG
    words = instruction.modifiers
    if (
        "sync" in words
        or "aligned" in words
        or (instruction.opcode == "bar" and "warp" not in words)
    ):
        return WARPS
    return PARTIAL


@dataclass(slots=True, eq=False)
class Step:
    """Instructions ``start`` to ``stop``, then ``end`` (or on to the next step).

    ``joint`` is the level that the first instruction needs; ``guard`` is set for a step that has
    nothing but a guard: lanes where it holds go on to the next step, the others to ``skip``.
    """

    index: int
    start: int
    stop: int
    end: Instruction | None
    joint: int
    entered: bool
    guard: Instruction | None = None
    skip: int = -1
    functions: dict[tuple[int, bool], tuple[Run, int]] | None = None


class Code:
    """The steps of one entry. ``step_at`` maps instruction indices to steps."""

    def __init__(self, function: Function, table: Mapping[str, Translate], layout: Layout) -> None:
        self.function = function
        self.instructions = function.instructions
        self.layout = layout
        self._table = table
        self._mentions = packed_f32.count_mentions(self.instructions)
        self.steps: list[Step] = []
        self.step_at: dict[int, int] = {}
        self._indices = {one: index for index, one in enumerate(self.instructions)}
        self._cut()
        self.check()

    @cached_property
    def points(self) -> Points:
        """What a coverage counts."""
        return find_points(self.steps, self.step_at, self.instructions)

    @cached_property
    def votes(self) -> tuple[Vote, ...]:
        """Branches on a vote, which a coverage counts."""
        return find_votes(self.steps, self.instructions)

    def target(self, label: Label) -> int:
        """The step that a label names."""
        return self.step_at[label.target]

    def run_of(self, step: Step, level: int, masked: bool) -> tuple[Run, int, int]:
        """The function for lanes of a level at a step.

        Returns it with the last step that it covers and the number of its instructions.
        """
        if step.functions is None:
            step.functions = {}
        known = step.functions.get((level, masked))
        if known is None:
            last = step.index
            if level != PARTIAL:
                while self.steps[last].end is None and last + 1 < len(self.steps):
                    follower = self.steps[last + 1]
                    if follower.entered or follower.guard or follower.joint > level:
                        break
                    last += 1
            known = (self._compile(step.start, self.steps[last].stop, masked), last)
            step.functions[level, masked] = known
        run, last = known
        return run, last, self.steps[last].stop - step.start

    def check(self) -> None:
        """Translate everything once, so that what is not modelled is refused before a launch."""
        for step in self.steps:
            emitter = Emitter(self.layout, False, {})
            for index in range(step.start, step.stop):
                self._translate(self.instructions[index], emitter)

    def _compile(self, start: int, stop: int, masked: bool) -> Run:
        namespace: dict[str, Any] = {}
        emitter = Emitter(self.layout, masked, namespace)
        run = self.instructions[start:stop]
        planned: list[Instruction | batches.Batch] = list(run)
        if not masked:
            apart = packed_f32.take_apart(run, self._mentions)
            planned = batches.plan(apart, self._translate, emitter)
        for one in planned:
            if isinstance(one, batches.Batch):
                batches.emit(one, emitter)
            else:
                self._translate(one, emitter)
        views = [f"    {view} = g.{view}" for view in sorted(emitter.views)]
        body = "\n".join(["def run(g, m):", *views, *emitter.lines, "    return None"])
        exec(compile(body, f"<ptx line {self._line(start)}>", "exec"), namespace)
        function: Run = namespace["run"]
        return function

    def _line(self, index: int) -> int:
        return self.instructions[index].line if index < len(self.instructions) else 0

    def _translate(self, instruction: Instruction, emitter: Emitter) -> None:
        translate = find(self._table, instruction)
        emitter.instruction = instruction
        guard = instruction.guard
        if guard is None:
            translate(instruction, emitter)
            return
        condition = emitter.get(guard, "pred")
        # a copy: the mask may outlive the predicate
        condition = f"~{condition}" if instruction.guard_negated else f"{condition}.copy()"
        mask, masked, indent = emitter.mask, emitter.masked, emitter.indent
        emitter.line(
            f"w = {condition}" + (f" & {mask}" if masked else f" if m is None else {condition} & m")
        )
        emitter.line("if w.any():")
        emitter.mask, emitter.masked, emitter.indent = "w", True, indent + "    "
        emitter.views.add("held")
        emitter.line(f"held[{self._indices[instruction]}] = 1")
        translate(instruction, emitter)
        emitter.mask, emitter.masked, emitter.indent = mask, masked, indent

    def _cut(self) -> None:
        instructions = self.instructions
        entered = {0}
        for index, instruction in enumerate(instructions):
            for operand in instruction.operands:
                if isinstance(operand, Label):
                    entered.add(operand.target)
                elif isinstance(operand, LabelTable):
                    entered.update(operand.targets)
            if ends_step(instruction):
                entered.add(index + 1)
            elif instruction.guard is not None and joint_level(instruction) != PARTIAL:
                entered.update((index, index + 1))
        index, count = 0, len(instructions)
        pending: list[Step] = []
        while index <= count:
            # the place behind the last instruction is a step too: falling off the end is a return
            self.step_at[index] = len(self.steps)
            if index == count:
                self.steps.append(Step(len(self.steps), index, index, None, PARTIAL, True))
                break
            first = instructions[index]
            joint = joint_level(first)
            if (
                first.guard is not None
                and first.opcode != "bra"
                and (joint != PARTIAL or ends_step(first))
            ):
                step = Step(len(self.steps), index, index, None, PARTIAL, True, guard=first)
                self.steps.append(step)
                pending.append(step)
                self.steps.append(self._straight(index, entered, joint))
            else:
                self.steps.append(self._straight(index, entered, joint))
            last = self.steps[-1]
            index = last.stop + (last.end is not None)
        for step in pending:
            step.skip = self.step_at[step.start + 1]

    def _straight(self, start: int, entered: set[int], joint: int) -> Step:
        instructions = self.instructions
        index = start
        number = len(self.steps)
        while index < len(instructions):
            instruction = instructions[index]
            if index > start and (index in entered or joint_level(instruction) != PARTIAL):
                break
            if ends_step(instruction):
                guarded = instruction.guard is not None and instruction.opcode != "bra"
                if index > start and (guarded or waits(instruction)):
                    break
                return Step(number, start, index, instruction, joint, start in entered)
            index += 1
            if instruction.guard is not None and joint_level(instruction) != PARTIAL:
                break
        return Step(number, start, index, None, joint, start in entered)
