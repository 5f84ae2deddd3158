"""Random attention problems, each as the C struct and as fa4gen.runtime's arguments."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fa4gen.runtime.arguments import (
    DESCALES,
    DTYPE_NAMES,
    TABLES,
    Arguments,
)
from fa4gen.runtime.axes import is_packed
from fa4gen.runtime.problem_limits import largest_row_count
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.vendoring.binding import MOST_TENSORS, AttentionArgs, Tensor
from fa4gen.vendoring.passed_tensors import passed_tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan

TENSORS = ("query", "key", "value", "out")
ARRAYS = ("lse", *DESCALES, "sinks", *TABLES)
"""The arrays of 4-byte numbers."""
WORDS = {"fp32": "float32", "int32": "int32"}
FAR = 1 << 46
"""Bytes between tensors that are to lie apart."""
WORKSPACE = 1 << 20
"""Below all tensors, so that none reaches it; the Python launcher has a counter of its own."""
WORKSPACE_ROOM = 1 << 43
"""Bytes that the workspace is said to have."""
WILD = -(2**62)
"""A stride that no arithmetic may touch; nobody checks it where a tensor has no elements."""
ROWS = (0, 1, 2, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 1000, 4096)
SCALES = (
    math.nan, math.inf, -math.inf, -1.0, 5e-324, 1e-40, 2.0**-127, 2.0**-126, 2.0**126,
    2.0**126 * (1 + 2**-52), 2.0**127, 1e300,
)  # fmt: skip


@dataclass(frozen=True)
class Operand:
    """Where a tensor lies; strides in elements, (batch, rows, heads)."""

    pointer: int
    strides: tuple[int, int, int]


@dataclass(frozen=True)
class AttentionProblem:
    batch: int
    query_rows: int
    key_rows: int
    query_heads: int
    key_heads: int
    operands: dict[str, Operand]
    arrays: dict[str, int]
    """Pointers; 0 is NULL."""
    softmax_scale: float
    pages: int = 0
    most_pages: int = 0
    page_table_stride: int = 0
    workspace_bytes: int = WORKSPACE_ROOM
    tensors: tuple[int, ...] = ()
    """Pointers of those that mask and score read, and of some that they do not."""

    def shape(self, plan: AttentionPlan, name: str) -> tuple[int, int, int, int]:
        """(batch, rows, heads, depth); the batch is 1 where sequences are packed."""
        depth = plan.value_depth if name in ("value", "out") else plan.depth
        batch = 1 if is_packed(plan, name) else self.batch
        if name in ("query", "out"):
            return (batch, self.query_rows, self.query_heads, depth)
        return (self.pages if plan.is_paged else batch, self.key_rows, self.key_heads, depth)

    def array_shape(self, plan: AttentionPlan, name: str) -> tuple[int, ...]:
        if name == "lse":
            batch = () if plan.is_ragged else (self.batch,)
            return (*batch, self.query_heads, self.query_rows)
        return {
            **dict.fromkeys(
                DESCALES, (self.pages if plan.has_page_scales else self.batch, self.key_heads)
            ),
            "query_descale": (self.batch, self.key_heads),
            "sinks": (self.query_heads,),
            "query_offsets": (self.batch + 1,),
            "key_offsets": (self.batch + 1,),
            "key_lengths": (self.batch,),
            "page_table": (self.batch, self.most_pages),
        }[name]

    def c_args(self) -> AttentionArgs:
        return AttentionArgs(
            struct_size=ctypes.sizeof(AttentionArgs),
            batch=self.batch,
            query_rows=self.query_rows,
            key_rows=self.key_rows,
            query_heads=self.query_heads,
            key_heads=self.key_heads,
            **{name: Tensor(one.pointer, *one.strides) for name, one in self.operands.items()},
            **self.arrays,
            softmax_scale=self.softmax_scale,
            workspace=WORKSPACE,
            workspace_bytes=self.workspace_bytes,
            page_table_stride=self.page_table_stride,
            most_pages=self.most_pages,
            pages=self.pages,
            tensors=(ctypes.c_void_p * MOST_TENSORS)(*self.tensors),
        )

    def python_arguments(self, plan: AttentionPlan) -> Arguments:
        views = {}
        for name, one in self.operands.items():
            size = element_bytes(plan, name)
            dtype = {"query": plan.dtype, "out": plan.out_dtype}.get(name, plan.kv_dtype)
            strides = (*(stride * size for stride in one.strides), size)
            shape = self.shape(plan, name)
            first = 1 if is_packed(plan, name) else 0
            dtype = DTYPE_NAMES[dtype]
            views[name] = TensorView(one.pointer, shape[first:], strides[first:], dtype, 0)
        arrays = {name: self._array(plan, name) for name in ARRAYS}
        lse = arrays.pop("lse")
        scale = self.softmax_scale or plan.depth**-0.5
        return Arguments(
            views["query"], views["key"], views["value"], views["out"], lse, scale, "bshd",
            **arrays, tensors=tuple(self._tensors(plan)),
        )  # fmt: skip

    def _tensors(self, plan: AttentionPlan) -> Iterator[tuple[str, TensorView | None]]:
        extents = {
            "batch": self.batch,
            "query_heads": self.query_heads,
            "key_heads": self.key_heads,
            "rows": self.query_rows,
            "keys": self.key_rows,
            "tiles": -(-self.query_rows // plan.BM),
            "entries": 0,
        }
        passed = passed_tensors(plan)
        for number, pointer in enumerate(self.tensors):
            if number >= len(passed):
                if pointer:
                    yield f"tensor{number}", contiguous(pointer, (1,))
                continue
            tensor = passed[number]
            shape = tuple(extents.get(str(one), one) for one in tensor.shape)
            view = contiguous(pointer, shape)._replace(dtype=WORDS[tensor.dtype])
            yield tensor.name, view if pointer or not math.prod(shape) else None

    def _array(self, plan: AttentionPlan, name: str) -> TensorView | None:
        """None where it is NULL, unless it is one without elements that the kernel needs."""
        pointer, shape = self.arrays[name], self.array_shape(plan, name)
        if not pointer and (math.prod(shape) or name not in needed(plan)):
            return None
        dtype = "int32" if name in TABLES else "float32"
        view = contiguous(pointer, shape)._replace(dtype=dtype)
        if name == "page_table":
            view = view._replace(strides=(4 * self.page_table_stride, 4))
        return view


def needed(plan: AttentionPlan) -> set[str]:
    """The arrays that a call has to give."""
    tables = (*plan.query_source.tables, *plan.key_source.tables)
    extra = {"lse": plan.lse, "sinks": plan.sinks}
    return {table.name for table in tables} | {name for name, has in extra.items() if has}


def taken(plan: AttentionPlan) -> set[str]:
    """The arrays that a call may give."""
    return needed(plan) | {f"{name}_descale" for name in plan.descaled}


def plain_problem(plan: AttentionPlan, **changes: Any) -> AttentionProblem:
    """Contiguous tensors of two times 300 rows and four heads, which lie apart."""

    rows = plan.page_size or 300

    def operand(place: int, depth: int) -> Operand:
        return Operand(place << 40, (300 * 4 * depth, 4 * depth, depth))

    def cached(place: int, depth: int) -> Operand:
        return Operand(place << 40, (rows * 4 * depth, 4 * depth, depth))

    problem = AttentionProblem(
        batch=2,
        query_rows=300,
        key_rows=rows,
        query_heads=4,
        key_heads=max(1, 4 // plan.tile_heads),
        operands={
            "query": operand(1, plan.depth),
            "key": cached(2, plan.depth),
            "value": cached(2, plan.depth) if plan.values_in_keys else cached(3, plan.value_depth),
            "out": operand(4, plan.value_depth),
        },
        arrays={name: (5 + i << 40) * (name in needed(plan)) for i, name in enumerate(ARRAYS)},
        softmax_scale=0.0,
        pages=11,
        most_pages=5,
        page_table_stride=5,
        tensors=tuple(40 + i << 40 for i in range(len(passed_tensors(plan)))),
    )
    return replace(problem, **changes)


def element_bytes(plan: AttentionPlan, name: str) -> int:
    if name in ("key", "value"):
        return plan.kv_element_bytes
    return plan.out_element_bytes if name == "out" else plan.element_bytes


def contiguous(pointer: int, shape: tuple[int, ...]) -> TensorView:
    strides = tuple(4 * math.prod(shape[i + 1 :]) for i in range(len(shape)))
    return TensorView(pointer, shape, strides, "float32", 0)


def packed_strides(
    extents: tuple[int, int, int], depth: int, order: tuple[int, ...], pads: tuple[int, ...]
) -> tuple[int, int, int]:
    """Strides with the axes in ``order`` from the slowest, each with so many elements unused."""
    strides = [0, 0, 0]
    step = depth
    for axis, pad in zip(reversed(order), pads, strict=True):
        step += pad
        strides[axis] = step
        step *= max(1, extents[axis])
    return strides[0], strides[1], strides[2]


@st.composite
def sound_problems(draw: Any, plan: AttentionPlan) -> AttentionProblem:
    """Problems that nothing is wrong with."""
    rows = st.one_of(st.sampled_from(ROWS), st.integers(0, 20000))
    key_heads = draw(st.sampled_from((1, 1, 2, 3, 8)))
    problem = AttentionProblem(
        batch=draw(st.sampled_from((0, 1, 1, 2, 3, 17))),
        query_rows=draw(rows),
        key_rows=plan.page_size or draw(rows),
        query_heads=key_heads * plan.tile_heads * draw(st.sampled_from((0, 1, 1, 2, 5))),
        key_heads=key_heads,
        operands={},
        arrays={
            name: (9 + i) * FAR + 4 * draw(st.integers(0, 3)) if name in taken(plan) else 0
            for i, name in enumerate(ARRAYS)
        },
        softmax_scale=draw(st.sampled_from((0.0, 0.125, 1 / 3, 0.08838834764831845, 1.0, 1e-30))),
        pages=draw(st.sampled_from((0, 1, 2, 33))),
        most_pages=draw(st.sampled_from((0, 1, 7, 300))),
        tensors=tuple(
            (30 + i) * FAR + one.alignment * draw(st.integers(0, 3))
            for i, one in enumerate(passed_tensors(plan))
        ),
    )
    for name in DESCALES:
        problem.arrays[name] *= draw(st.booleans())
    stride = problem.most_pages + draw(st.sampled_from((0, 0, 3)))
    problem = replace(problem, page_table_stride=stride)
    operands = {}
    for i, name in enumerate(TENSORS):
        unit = 16 // element_bytes(plan, name)
        shape = problem.shape(plan, name)
        order = draw(st.permutations((0, 1, 2)))
        pads = tuple(unit * draw(st.sampled_from((0, 0, 1, 7))) for _ in range(3))
        source = plan.query_source if name in ("query", "out") else plan.key_source
        if source.clipped and shape[0] > 1:  # from batch to batch it is whole rows
            order, pads = draw(st.sampled_from(((0, 1, 2), (1, 0, 2)))), (*pads[:2], 0)
            order = order if shape[1] == 1 else (0, 1, 2)
        strides = packed_strides(shape[:3], shape[3], tuple(order), pads)
        operands[name] = Operand((i + 1) * FAR + 16 * draw(st.integers(0, 9)), strides)
    return replace(problem, operands=operands)


def _change(draw: Any, plan: AttentionPlan, problem: AttentionProblem, kind: str) -> Any:
    """One change of a sound problem; most are wrong, and some are not."""
    name = draw(st.sampled_from(TENSORS))
    one = problem.operands[name]
    operands, arrays = dict(problem.operands), dict(problem.arrays)
    if kind == "address":
        operands[name] = replace(one, pointer=one.pointer + draw(st.sampled_from((1, 2, 4, 8, 16))))
    elif kind == "stride":
        strides = list(one.strides)
        axis = draw(st.integers(0, 2))
        strides[axis] = draw(
            st.one_of(
                st.sampled_from((0, 1, -8, -16, 1 << 36, (1 << 40) - 16, 1 << 40, -(1 << 62))),
                st.just(strides[axis] + draw(st.integers(1, 16))),
                st.just(strides[draw(st.integers(0, 2))]),
            )
        )
        operands[name] = replace(one, strides=(strides[0], strides[1], strides[2]))
    elif kind == "overlap":
        other = draw(st.sampled_from(("query", "key", "value")))
        base = problem.operands[other]
        shift = draw(st.one_of(st.integers(-64, 64), st.integers(-10000, 10000))) * 16
        same = draw(st.booleans())
        strides = base.strides if same else problem.operands["out"].strides
        operands["out"] = Operand(base.pointer + shift, strides)
    elif kind == "interleaved":  # rows of all tensors in one buffer
        width = sum(problem.shape(plan, each)[2:][0] * plan.depth for each in TENSORS)
        size = max(element_bytes(plan, each) for each in TENSORS)
        at = FAR
        for each in TENSORS:
            rows = width * size // element_bytes(plan, each)
            heads = problem.shape(plan, each)[3]
            count = max(problem.query_rows, problem.key_rows, 1)
            operands[each] = Operand(at, (rows * count, rows, heads))
            step = problem.shape(plan, each)[2] * heads * element_bytes(plan, each)
            at += step - 16 * draw(st.sampled_from((0, 0, 0, 1)))
    elif kind == "array":
        which = draw(st.sampled_from(ARRAYS))
        whole = problem.operands[draw(st.sampled_from(TENSORS))].pointer
        arrays[which] = draw(
            st.sampled_from((0, 9 * FAR + 2, 9 * FAR + 1, 12 * FAR + 4, whole, whole + 4000))
        )
    elif kind == "tensor":
        whole = problem.operands[draw(st.sampled_from(TENSORS))].pointer
        pointer = draw(st.sampled_from((0, 9 * FAR + 2, 12 * FAR + 4, whole, whole + 4000)))
        tensors = [*problem.tensors, *(0,) * (MOST_TENSORS - len(problem.tensors))]
        tensors[draw(st.sampled_from((0, 0, 1, 7)))] = pointer
        return replace(problem, tensors=tuple(tensors))
    elif kind == "heads":
        heads = problem.key_heads * draw(st.sampled_from((1, 2, 3, 4, 6)))
        return replace(problem, query_heads=heads)
    elif kind == "scale":
        return replace(problem, softmax_scale=draw(st.sampled_from(SCALES)))
    elif kind == "extent":
        most = largest_row_count(plan)
        pages = ("pages", "most_pages", "page_table_stride") if plan.is_paged else ()
        which = draw(
            st.sampled_from(("batch", "query_rows", "key_rows", "query_heads", "key_heads", *pages))
        )
        value = draw(st.sampled_from((0, 1, 3, most, most + 1, 2**31 - 1, 2**31, 2**40)))
        return replace(problem, **{which: value})
    return replace(problem, operands=operands, arrays=arrays)


KINDS = (
    "heads",
    "address",
    "stride",
    "overlap",
    "interleaved",
    "array",
    "tensor",
    "scale",
    "extent",
)


@st.composite
def any_problems(draw: Any, plan: AttentionPlan) -> AttentionProblem:
    """Problems with up to three changes."""
    problem = draw(sound_problems(plan))
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)):
        problem = _change(draw, plan, problem, kind)
    return problem


def empty_problem(plan: AttentionPlan) -> AttentionProblem:
    """A problem without elements whose addresses and strides mean nothing."""
    operands = dict.fromkeys(TENSORS, Operand(1, (WILD, WILD, WILD)))
    arrays = {name: 4096 * (name in needed(plan) - {"lse"}) for name in ARRAYS}
    tensors = (4096,) * len(passed_tensors(plan))
    shape = 9, 0, plan.page_size or 0, 8, 4
    return AttentionProblem(*shape, operands, arrays, 0.0, tensors=tensors)
