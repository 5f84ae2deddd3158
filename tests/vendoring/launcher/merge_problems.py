"""Random problems of merging, each as the C struct and as fa4gen.runtime's arguments."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fa4gen.runtime.merge_arguments import MERGE_DTYPES, MergeArguments
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.vendoring.binding import MergeArgs, RowNumbers, Tensor
from tests.vendoring.launcher.attention_problems import FAR, WILD

if TYPE_CHECKING:
    from fa4gen.designs.merge.model import MergePlan

NAMES = ("parts", "part_lse", "out", "lse")
OF_PARTS = {"out": "parts", "lse": "part_lse"}
"""Outputs, and the inputs that they may overwrite."""
ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}


@dataclass(frozen=True)
class Operand:
    """The place of a tensor; strides in elements: part, batch, rows, heads (or heads, rows)."""

    pointer: int
    strides: tuple[int, int, int, int]


@dataclass(frozen=True)
class MergeProblem:
    num_parts: int
    batch: int
    rows: int
    heads: int
    operands: dict[str, Operand]
    """lse is absent where a call gives none."""

    def shape(self, plan: MergePlan, name: str) -> tuple[int, ...]:
        """Every tensor with an axis of parts, and of columns where it has them."""
        if name in ("lse", "part_lse"):
            return self.num_parts, self.batch, self.heads, self.rows
        return self.num_parts, self.batch, self.rows, self.heads, plan.depth

    def c_args(self) -> MergeArgs:
        one = self.operands
        args = MergeArgs(
            struct_size=ctypes.sizeof(MergeArgs),
            num_parts=self.num_parts,
            batch=self.batch,
            rows=self.rows,
            heads=self.heads,
            parts=Tensor(one["parts"].pointer, *one["parts"].strides[1:]),
            part_stride=one["parts"].strides[0],
            part_lse=RowNumbers(one["part_lse"].pointer, *one["part_lse"].strides[1:]),
            part_lse_stride=one["part_lse"].strides[0],
            out=Tensor(one["out"].pointer, *one["out"].strides[1:]),
        )
        if "lse" in one:
            args.lse = RowNumbers(one["lse"].pointer, *one["lse"].strides[1:])
        return args

    def python_arguments(self, plan: MergePlan) -> MergeArguments:
        views = {}
        for name, one in self.operands.items():
            size = element_bytes(plan, name)
            shape = self.shape(plan, name)
            strides = (*(stride * size for stride in one.strides), size)[: len(shape)]
            first = 1 if name in OF_PARTS else 0
            dtype = {"parts": plan.dtype, "out": plan.out_dtype}.get(name, "fp32")
            views[name] = TensorView(
                one.pointer, shape[first:], strides[first:], MERGE_DTYPES[dtype], 0
            )
            if not one.pointer and 0 not in shape[first:] and name in OF_PARTS:
                del views[name]
        return MergeArguments(views["parts"], views["part_lse"], views.get("out"), views.get("lse"))


def element_bytes(plan: MergePlan, name: str) -> int:
    return {"parts": plan.element_bytes, "out": plan.out_element_bytes}.get(name, 4)


@st.composite
def sound_problems(draw: Any, plan: MergePlan) -> MergeProblem:
    """Problems that nothing is wrong with: in any order of axes, some over a part."""
    extents = st.sampled_from((0, 1, 1, 2, 3, 31, 32, 33, 1000))
    problem = MergeProblem(
        draw(st.sampled_from((0, 1, 2, 2, 3, 17))), draw(extents), draw(extents), draw(extents), {}
    )
    operands = {}
    for i, name in enumerate(NAMES if plan.lse else NAMES[:3]):
        operands[name] = _laid_out(draw, plan, problem, name, (i + 1) * FAR)
    for name in operands.keys() & OF_PARTS.keys():
        same_type = name == "lse" or plan.dtype == plan.out_dtype
        if problem.num_parts and same_type and draw(st.booleans()):
            operands[name] = over_a_part(plan, problem, operands, name, draw(st.integers(0, 16)))
    return replace(problem, operands=operands)


def over_a_part(
    plan: MergePlan, problem: MergeProblem, operands: dict[str, Operand], name: str, part: int
) -> Operand:
    """Return an output in the place of a part."""
    parts = operands[OF_PARTS[name]]
    step = parts.strides[0] * element_bytes(plan, OF_PARTS[name])
    return replace(parts, pointer=parts.pointer + part % problem.num_parts * step)


def _laid_out(draw: Any, plan: MergePlan, problem: MergeProblem, name: str, place: int) -> Operand:
    """Draw strides: of the axes in any order, with gaps."""
    columns = name in ("parts", "out")
    unit = 16 // element_bytes(plan, name) if columns else 1
    step = plan.depth if columns else draw(st.sampled_from((1, 1, 3)))
    extents = problem.shape(plan, name)
    strides = [0, 0, 0, 0]
    for axis in draw(st.permutations(range(4))):
        strides[axis] = step if extents[axis] > 1 else WILD
        step = step * max(1, extents[axis]) + draw(st.sampled_from((0, 0, 1))) * unit
    return Operand(place + (16 if columns else 4), tuple(strides))


@st.composite
def any_problems(draw: Any, plan: MergePlan) -> MergeProblem:
    """Problems with up to two mistakes, or none."""
    problem = draw(sound_problems(plan))
    for _ in range(draw(st.integers(1, 2))):
        problem = _change(draw, plan, problem)
    return problem


def _change(draw: Any, plan: MergePlan, problem: MergeProblem) -> MergeProblem:
    name = draw(st.sampled_from(tuple(problem.operands)))
    one = problem.operands[name]
    kind = draw(st.sampled_from(("pointer", "stride", "overlap", "absent", "lse", "extents")))
    if kind == "pointer":
        one = replace(one, pointer=one.pointer + draw(st.sampled_from((1, 2, 4, 8, 16))))
    elif kind == "stride":
        axis = draw(st.integers(0, 3))
        strides = list(one.strides)
        strides[axis] = draw(st.sampled_from((-8, -1, 0, 1, 4, 8, 2**39, 2**41)))
        one = replace(one, strides=tuple(strides))
    elif kind == "overlap":
        other = problem.operands[draw(st.sampled_from(tuple(problem.operands)))]
        one = replace(one, pointer=other.pointer + draw(st.integers(-300, 300)) * 16)
    elif kind == "absent" and name in OF_PARTS:
        one = replace(one, pointer=0)
    elif kind == "lse" and not plan.lse:
        lse = Operand(9 * FAR, (0, 1, 1, 1))
        return replace(problem, operands={**problem.operands, "lse": lse})
    elif kind == "extents":
        field = draw(st.sampled_from(("batch", "rows", "heads")))
        return replace(problem, **{field: draw(st.sampled_from((0, 2**16, 2**31 - 1)))})
    return replace(problem, operands={**problem.operands, name: one})


def plain_problem(plan: MergePlan, **changes: Any) -> MergeProblem:
    """Three parts, contiguous, of two batches of 33 rows of three heads."""
    problem = MergeProblem(**{"num_parts": 3, "batch": 2, "rows": 33, "heads": 3, **changes,
                              "operands": {}})  # fmt: skip
    operands = {}
    for i, name in enumerate(NAMES if plan.lse else NAMES[:3]):
        *_, second, third = problem.shape(plan, name)[:4]
        step = plan.depth if name in ("parts", "out") else 1
        strides = (problem.batch * second * third * step, second * third * step, third * step, step)
        operands[name] = Operand((i + 1) * FAR, strides)
    return replace(problem, operands=operands)


def empty_problem(plan: MergePlan) -> MergeProblem:
    """A problem without rows."""
    return plain_problem(plan, rows=0)
