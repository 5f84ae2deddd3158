"""An entry cut into steps, and the Python functions generated for them.

Steps that differ only by joint instructions form a chain, run as one function when the lanes are
complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from fa4gen.emulator.coverage.points import Points, Vote
from fa4gen.emulator.ptx.syntax import Function, Instruction, Label, LabelTable
from fa4gen.emulator.state.lanes import PARTIAL
from fa4gen.emulator.state.layout import Layout
from fa4gen.emulator.translate import batches, packed_f32
from fa4gen.emulator.translate.choices import find_choices, note_choice
from fa4gen.emulator.translate.coverage_points import find_points
from fa4gen.emulator.translate.emit import Emitter
from fa4gen.emulator.translate.generated_code import make_function
from fa4gen.emulator.translate.registry import Translate, apply, find
from fa4gen.emulator.translate.steps import Run, Step, ends_step, joint_level, waits
from fa4gen.emulator.translate.votes import find_votes


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
        self._choices = find_choices(self.instructions)
        self._cut()
        self.check()

    @cached_property
    def points(self) -> Points:
        """The points that a coverage counts."""
        return find_points(self.steps, self.step_at, self.instructions, self._choices)

    @cached_property
    def votes(self) -> tuple[Vote, ...]:
        """Branches on a vote, which a coverage counts."""
        return find_votes(self.steps, self.instructions)

    def executed(self, reach: Sequence[int], held: Sequence[int]) -> bytearray:
        """The instructions that ran, for lanes that came from each step as far as ``reach`` says.

        A guarded one counts where ``held`` is set; the result has one more entry, for the end.
        """
        ran = bytearray(len(self.instructions) + 1)
        for first, last in enumerate(reach):
            for step in self.steps[first : last + 1] if last >= 0 else ():
                for index in range(step.start, step.stop):
                    ran[index] = self.instructions[index].guard is None or held[index]
            if last >= 0 and self.steps[last].end is not None:
                ran[self.steps[last].stop] = 1
        return ran

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
        """Translate everything once, so that unknown instructions are refused before a launch."""
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
                continue
            self._translate(one, emitter)
            if not batches.is_pure(one):
                emitter.previous = one
        name = f"<ptx line {self._line(start)}>"
        return make_function(emitter.views, emitter.lines, namespace, name)

    def _line(self, index: int) -> int:
        return self.instructions[index].line if index < len(self.instructions) else 0

    def _translate(self, instruction: Instruction, emitter: Emitter) -> None:
        translate = find(self._table, instruction)
        emitter.instruction = instruction
        guard = instruction.guard
        if guard is None:
            self._note_choice(instruction, emitter)
            apply(translate, instruction, emitter)
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
        self._note_choice(instruction, emitter)
        apply(translate, instruction, emitter)
        emitter.mask, emitter.masked, emitter.indent = mask, masked, indent

    def _note_choice(self, instruction: Instruction, emitter: Emitter) -> None:
        index = self._indices.get(instruction)
        if index in self._choices:
            emitter.call(apply(partial(note_choice, index), instruction, emitter))

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
            # the position past the last instruction is a step too: falling off the end is a return
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
