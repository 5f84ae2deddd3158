"""Random matrix products, each as the C struct and as fa4gen.runtime's arguments."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fa4gen.runtime.gemm_arguments import LARGEST_EXTENT, GemmArguments
from fa4gen.runtime.gemm_axes import GEMM_DTYPES, dtype_of, element_bytes_of, named_axes
from fa4gen.runtime.group_arguments import MORE, ROW_ARGUMENTS, atom_groups, group_axes
from fa4gen.runtime.scale_arguments import ATOM_STRIDES, SCALE_BYTES
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.scales.atoms import ATOM_BYTES, BYTES, GROUPS, LINES
from fa4gen.vendoring.binding import GemmArgs, Matrix, Scales
from tests.vendoring.launcher.attention_problems import FAR, WILD

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan

ATOM = (LINES, GROUPS, BYTES)
EXTENTS = (0, 1, 2, 7, 8, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 4096)
FACTORS = (
    math.nan, math.inf, -math.inf, 1e-300, 3.4028234663852886e38, -3.4028234663852886e38,
    3.4028234663852890e38, 1e39, 0.0, -2.5,
)  # fmt: skip


@dataclass(frozen=True)
class Operand:
    pointer: int
    batch_stride: int
    stride: int
    """Elements."""


@dataclass(frozen=True)
class Index:
    pointer: int | None
    stride: int
    a_rows: int


@dataclass(frozen=True)
class Written:
    """The arrays that only some kernels write, and those of scattered rows."""

    out_index: int | None = None
    row_weights: int | None = None
    out_rows: int = 0
    out_scales: Scales = field(default_factory=Scales)
    out_amax: int | None = None
    out_tensor_scale: int | None = None


@dataclass(frozen=True)
class GemmProblem:
    batch: int
    m: int
    n: int
    k: int
    operands: dict[str, Operand]
    """c is absent where the kernel takes none."""
    alpha: float
    beta: float
    scales: dict[str, Scales] = field(default_factory=dict)
    """By the argument; a kernel takes all or none."""
    rows: dict[str, int | None] = field(default_factory=dict)
    """The addresses of arrays with the rows of groups, by the argument."""
    index: Index | None = None
    written: Written = field(default_factory=Written)

    def c_args(self) -> GemmArgs:
        return GemmArgs(
            struct_size=ctypes.sizeof(GemmArgs),
            batch=self.batch,
            m=self.m,
            n=self.n,
            k=self.k,
            **{
                name: Matrix(one.pointer, one.batch_stride, one.stride)
                for name, one in self.operands.items()
            },
            **self.scales,
            **self.rows,
            row_index=self.index and self.index.pointer,
            row_index_stride=self.index.stride if self.index else 0,
            a_rows=self.index.a_rows if self.index else 0,
            **vars(self.written),
            alpha=self.alpha,
            beta=self.beta,
        )

    def python_arguments(self, plan: GemmPlan) -> GemmArguments:
        views = {name: self._view(plan, name) for name in self.operands}
        return GemmArguments(
            views["a"], views["b"], views.get("c"), views["out"], self.alpha, self.beta,
            self._scales(plan, "scale_a"), self._scales(plan, "scale_b"),
            self._rows("row_offsets"), self._rows("row_counts"), self._index(plan),
            self._out_scales(plan), self._array(plan, "out_index"),
            self._array(plan, "row_weights"), self._array(plan, "out_amax"),
            self._array(plan, "out_tensor_scale"),
        )  # fmt: skip

    def _array(self, plan: GemmPlan, name: str) -> TensorView | None:
        """Return an array with an element for each row, or one of few numbers."""
        address, count = getattr(self.written, name), self.m
        if name == "out_amax":
            count = self.batch if plan.config.groups else 1
        if name == "out_tensor_scale":
            count = 1
        taken = takes(plan, name)
        if address is None and (count or not taken):
            return None
        dtype = "int32" if name == "out_index" else "float32"
        return TensorView(address or 0, (count,), (4,), dtype, 0)

    def _out_scales(self, plan: GemmPlan) -> TensorView | None:
        one, described = self.written.out_scales, plan.output_scales
        if described is None:
            return TensorView(one.data, (), (), "float32", 0) if one.data else None
        dtype = GEMM_DTYPES[described.dtype]
        size = SCALE_BYTES[dtype]
        shape = (self.batch, *self.out_scale_extents(plan))
        if not one.data and 0 not in shape[plan.groups == "offsets" :]:
            return None
        strides = tuple(size * step for step in (one.batch_stride, one.stride, one.k_stride))
        if described.in_atoms:
            shape, strides = (*shape, *ATOM), (*strides, *ATOM_STRIDES)
        return self.in_groups(plan, "out_scales", one.data or 0, shape, strides, dtype)

    def out_scale_extents(self, plan: GemmPlan) -> tuple[int, int]:
        """Return the rows and blocks of columns with a scale, or their atoms."""
        groups = atom_groups(plan, self.batch)
        found = plan.output_scales.extents(self.m, plan.output_columns(self.n), groups)
        _, across, along = plan.output_scales.axes[:3]
        return found[across], found[along]

    def _rows(self, name: str) -> TensorView | None:
        address = self.rows.get(name)
        if name not in self.rows or (address is None and (self.batch or MORE[name])):
            return None
        return TensorView(address or 0, (self.batch + MORE[name],), (4,), "int32", 0)

    def _index(self, plan: GemmPlan) -> TensorView | None:
        one = self.index
        if one is None or (one.pointer is None and self.m and self.batch):
            return None
        return self.in_groups(
            plan, "row_index", one.pointer or 0, (self.batch, self.m), (one.stride * 4, 4), "int32"
        )

    def in_groups(
        self,
        plan: GemmPlan,
        name: str,
        pointer: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: str,
    ) -> TensorView:
        """Return a view of an argument of a batch without the axis that groups share."""
        axes = named_axes(plan, name)
        left = len(axes) - len(group_axes(plan, axes)) if plan.config.groups and axes else 0
        return TensorView(pointer, shape[left:], strides[left:], dtype, 0)

    def rows_of_a(self, plan: GemmPlan) -> int:
        return self.index.a_rows if plan.gathers_rows and self.index else self.m

    def scale_extents(self, plan: GemmPlan, name: str) -> tuple[int, int]:
        """Return the blocks across and along k."""
        row = next(row for row in plan.scales if row.name == name)
        groups = atom_groups(plan, self.batch)
        extents = row.extents(self.rows_of_a(plan), self.n, self.k, groups)
        if row.in_atoms:
            return extents[f"{row.across}_atoms"], extents["k_atoms"]
        return extents[row.across], extents["k_blocks"]

    def _scales(self, plan: GemmPlan, name: str) -> TensorView | None:
        one = self.scales.get(name)
        if not plan.scales:
            return one and TensorView(one.data, (), (), "float32", 0)
        dtype, size = GEMM_DTYPES[plan.scales[0].dtype], scale_bytes(plan)
        across, along = self.scale_extents(plan, name)
        if not one.data and self.batch and across and along:
            return None
        axes = [(across, one.stride), (along, one.k_stride)]
        if plan.scales[0].in_atoms:
            axes = [(self.batch, one.batch_stride), *axes]
            shape = (*(extent for extent, _ in axes), *ATOM)
            strides = (*(stride for _, stride in axes), *ATOM_STRIDES)
            return self.in_groups(plan, name, one.data or 0, shape, strides, dtype)
        axes = [(self.batch, one.batch_stride), *(axes if name == "scale_a" else axes[::-1])]
        shape = tuple(extent for extent, _ in axes)
        strides = tuple(stride * size for _, stride in axes)
        return self.in_groups(plan, name, one.data or 0, shape, strides, dtype)

    def outer_and_inner(self, plan: GemmPlan, name: str) -> tuple[int, int]:
        k = self.k // plan.elements_per_byte
        if name == "a":
            rows = self.rows_of_a(plan)
            return (rows, k) if plan.a_major == "k" else (k, rows)
        if name == "b":
            return (self.n, k) if plan.b_major == "k" else (k, self.n)
        out = self.m, plan.output_columns(self.n)
        if name == "out" and plan.scatters_rows:
            return self.written.out_rows, self.n
        if name == "out":
            return self.m, out[1] // plan.out_elements_per_byte
        return (1, *(plan.c_extents(*out) if name == "c" else out))[-2:]

    def _view(self, plan: GemmPlan, name: str) -> TensorView:
        one = self.operands[name]
        size = element_bytes(plan, name)
        dtype = GEMM_DTYPES[dtype_of(plan, name)]
        k = self.k // plan.elements_per_byte
        out = self.m, plan.output_columns(self.n)
        stored = (self.m, out[1] // plan.out_elements_per_byte)
        if plan.scatters_rows:
            stored = (self.written.out_rows, self.n)
        shapes = {"a": (self.rows_of_a(plan), k), "b": (k, self.n), "out": stored}
        shape = plan.c_extents(*out) if name == "c" and plan.c.exists else shapes.get(name, ())
        if len(shape) == 1:
            strides = (size,)
        elif (name == "a" and plan.a_major == "m") or (name == "b" and plan.b_major == "k"):
            strides = (size, one.stride * size)
        else:
            strides = (one.stride * size, size)
        shape, strides = (self.batch, *shape), (one.batch_stride * size, *strides)
        return self.in_groups(plan, name, one.pointer, shape, strides, dtype)


def element_bytes(plan: GemmPlan, name: str) -> int:
    return element_bytes_of(plan, name)


def scale_bytes(plan: GemmPlan) -> int:
    return SCALE_BYTES[GEMM_DTYPES[plan.scales[0].dtype]]


def takes(plan: GemmPlan, name: str) -> bool:
    """Return whether a kernel takes an array of ``Written``."""
    scales = plan.output_scales
    of_tensor = scales is not None and scales.has_tensor_scale
    others = {"out_amax": plan.finds_amax, "out_tensor_scale": of_tensor}
    return others.get(name, plan.scatters_rows)


def names(plan: GemmPlan) -> tuple[str, ...]:
    return ("a", "b", "out") if not plan.c.exists else ("a", "b", "c", "out")


@st.composite
def sound_problems(draw: Any, plan: GemmPlan) -> GemmProblem:
    """Problems that nothing is wrong with."""
    extents = st.one_of(st.sampled_from(EXTENTS), st.integers(0, 9000))
    factors = st.sampled_from((0.0, 1.0, -0.5, 1 / 3, 1e-20))
    problem = GemmProblem(
        batch=draw(st.sampled_from((0, 1, 1, 2, 17))),
        m=draw(extents),
        n=draw(extents) // unit_of(plan) * unit_of(plan),
        k=draw(extents) // plan.elements_per_byte * plan.elements_per_byte,
        operands={},
        alpha=draw(factors),
        beta=1.0 if not plan.c.exists else draw(factors),
    )
    problem = replace(
        problem,
        rows=_rows_of(plan),
        index=_sound_index(draw, plan, problem),
        written=_sound_written(draw, plan, problem),
    )
    operands = {}
    for i, name in enumerate(names(plan)):
        unit = 16 // element_bytes(plan, name)
        outer, inner = problem.outer_and_inner(plan, name)
        stride = (-(-inner // unit) + draw(st.sampled_from((0, 0, 1, 5)))) * unit
        batch_stride = (stride * outer // unit + draw(st.sampled_from((0, 0, 3)))) * unit
        if name != "out" and draw(st.sampled_from((False, False, True))):
            batch_stride = 0
        operands[name] = Operand((i + 1) * FAR + 16 * i, batch_stride, stride)
    if plan.c.is_matrix and draw(st.sampled_from((False, True))):
        operands["c"] = operands["out"]
    scales = {row.name: _sound_scales(draw, plan, problem, row.name) for row in plan.scales}
    return replace(problem, operands=operands, scales=scales)


def _sound_scales(draw: Any, plan: GemmPlan, problem: GemmProblem, name: str) -> Scales:
    """Draw scales of which either axis is contiguous, or neither, or all are the same."""
    across, along = problem.scale_extents(plan, name)
    if plan.scales[0].in_atoms:
        stride = 512 * along + draw(st.sampled_from((0, 0, 48)))
        batch = draw(st.sampled_from((0, stride * across + 16)))
        return Scales((7 if name == "scale_a" else 8) * FAR + 16, batch, stride, 512)
    step, gap = draw(st.sampled_from((0, 1, 1, 3))), draw(st.sampled_from((0, 0, 1)))
    strides = [step, step * across + gap]
    if draw(st.booleans()):
        strides = [step * along + gap, step]
    batch = draw(st.sampled_from((0, max(strides) * max(across, along, 1))))
    place = (7 if name == "scale_a" else 8) * FAR
    return Scales(place + scale_bytes(plan), batch, *strides)


def unit_of(plan: GemmPlan) -> int:
    """Return the unit of B's columns where rows are scattered, or elements share a byte."""
    shares = plan.scatters_rows or plan.out_elements_per_byte > 1
    return plan.columns_of_b(plan.column_unit) if shares else 1


def _sound_written(draw: Any, plan: GemmPlan, problem: GemmProblem) -> Written:
    if plan.scatters_rows:
        rows = draw(st.sampled_from((0, 1, 77, 5000)))
        return Written(13 * FAR + 4, 14 * FAR + 4, rows)
    if plan.finds_amax:
        return Written(out_amax=13 * FAR + 4)
    if plan.output_scales is None:
        return Written()
    across, along = problem.out_scale_extents(plan)
    gap, unit = draw(st.sampled_from((0, 0, 1))), 1
    if plan.output_scales.in_atoms:
        gap, unit = 4 * gap, ATOM_BYTES
    strides = [unit * along + gap, unit]
    if draw(st.booleans()):
        strides = [unit, unit * across + gap]
    size = 4 if unit > 1 else SCALE_BYTES[GEMM_DTYPES[plan.output_scales.dtype]]
    batch = max(strides) * max(along, across, 1)
    of_tensor = 14 * FAR + 4 if plan.output_scales.has_tensor_scale else None
    scales = Scales(13 * FAR + size, batch, *strides)
    return Written(out_scales=scales, out_tensor_scale=of_tensor)


def _change_written(draw: Any, plan: GemmPlan, problem: GemmProblem) -> GemmProblem:
    """Change an array of Written, or give it to a kernel that takes none."""
    kinds = ("out_index", "row_weights", "out_scales", "out_amax", "out_rows", "out_tensor_scale")
    name = draw(st.sampled_from(kinds))
    one, out = problem.written, problem.operands["out"].pointer
    shift = draw(st.integers(-10000, 10000)) * 4
    if name == "out_rows":
        if not plan.scatters_rows:
            return problem
        rows = draw(st.sampled_from((0, 1, LARGEST_EXTENT)))
        return replace(problem, written=replace(one, out_rows=rows))
    if name != "out_scales":
        taken = takes(plan, name)
        address = getattr(one, name) or 12 * FAR
        address += draw(st.sampled_from((1, 2, 4)))
        if taken and draw(st.booleans()):
            address = None
        elif taken and name != "out_amax" and draw(st.booleans()):
            address = out + shift
        return replace(problem, written=replace(one, **{name: address}))
    fields = {key: getattr(one.out_scales, key) for key, _ in Scales._fields_}
    kind = draw(st.sampled_from(("data", "absent", "overlap", "stride", "k_stride")))
    if plan.output_scales is None:
        fields["data"] = 12 * FAR
    elif kind == "data":
        fields["data"] += draw(st.sampled_from((1, 2, 4)))
    elif kind == "absent":
        fields["data"] = None
    elif kind == "overlap":
        name = draw(st.sampled_from(names(plan)))
        fields["data"] = problem.operands[name].pointer + shift
    else:
        fields[kind] = draw(st.sampled_from((-1, -8, 0, 5, 1 << 40, -(1 << 50))))
    return replace(problem, written=replace(one, out_scales=Scales(**fields)))


def _rows_of(plan: GemmPlan) -> dict[str, int | None]:
    kind = plan.config.groups
    return {name: 10 * FAR + 4 for name, kinds in ROW_ARGUMENTS.items() if kind in kinds}


def _sound_index(draw: Any, plan: GemmPlan, problem: GemmProblem) -> Index | None:
    if not plan.gathers_rows:
        return None
    stride = problem.m + draw(st.sampled_from((0, 0, 3, -problem.m)))
    return Index(11 * FAR + 4, stride, draw(st.sampled_from((0, 1, 77, 5000))))


def _change_rows(draw: Any, plan: GemmPlan, problem: GemmProblem) -> GemmProblem:
    """Change the arrays with rows of groups, or the index."""
    name = draw(st.sampled_from((*ROW_ARGUMENTS, "row_index")))
    if name != "row_index":
        shift = draw(st.sampled_from((1, 2, 4)))
        is_taken = plan.config.groups in ROW_ARGUMENTS[name]
        there = problem.rows.get(name) or 12 * FAR  # an earlier change may have left it out
        address = None if is_taken and draw(st.booleans()) else there + shift
        return replace(problem, rows={**problem.rows, name: address})
    index = problem.index or Index(12 * FAR, 0, 0)
    kind = draw(st.sampled_from(("address", "absent", "overlap", "a_rows")))
    if kind == "address":
        index = replace(index, pointer=index.pointer + draw(st.sampled_from((1, 2, 4))))
    elif kind == "absent" and plan.gathers_rows:
        index = replace(index, pointer=None)
    elif kind == "overlap":
        shift = draw(st.integers(-10000, 10000)) * 4
        index = replace(index, pointer=problem.operands["out"].pointer + shift)
    elif plan.gathers_rows:
        rows = draw(st.sampled_from((LARGEST_EXTENT, LARGEST_EXTENT + 1, 2**40)))
        index = replace(index, a_rows=rows)
    return replace(problem, index=index)


def _change_scales(draw: Any, plan: GemmPlan, problem: GemmProblem) -> GemmProblem:
    name = draw(st.sampled_from(("scale_a", "scale_b")))
    one = problem.scales.get(name, Scales(9 * FAR, 0, 0, 0))
    if not plan.scales:
        return replace(problem, scales={name: one})
    fields = {key: getattr(one, key) for key, _ in Scales._fields_}
    kind = draw(
        st.sampled_from(("data", "absent", "overlap", "stride", "k_stride", "batch_stride"))
    )
    if kind == "data":
        fields["data"] += draw(st.sampled_from((1, 2, 4)))
    elif kind == "absent":
        fields["data"] = None
    elif kind == "overlap":
        shift = draw(st.integers(-10000, 10000)) * scale_bytes(plan)
        fields["data"] = problem.operands["out"].pointer + shift
    else:
        fields[kind] = draw(st.sampled_from((-1, -8, 0, 5, 1 << 40, -(1 << 50))))
    return replace(problem, scales={**problem.scales, name: Scales(**fields)})


def _change(draw: Any, plan: GemmPlan, problem: GemmProblem, kind: str) -> Any:
    """One change of a sound problem; most are wrong, and some are not."""
    name = draw(st.sampled_from(names(plan)))
    one = problem.operands[name]
    operands = dict(problem.operands)
    if kind == "address":
        operands[name] = replace(one, pointer=one.pointer + draw(st.sampled_from((1, 2, 4, 8, 16))))
    elif kind in ("stride", "batch_stride"):
        old = one.stride if kind == "stride" else one.batch_stride
        strange = st.sampled_from((0, 1, 8, -8, -16, 1 << 36, (1 << 40) - 16, 1 << 40, -(1 << 62)))
        new = draw(st.one_of(strange, st.just(old + draw(st.integers(1, 16)))))
        operands[name] = replace(one, **{kind: new})
    elif kind == "overlap":
        other = draw(st.sampled_from([each for each in names(plan) if each != "out"]))
        base = problem.operands[other]
        shift = draw(st.one_of(st.integers(-64, 64), st.integers(-10000, 10000))) * 16
        out = problem.operands["out"]
        if draw(st.booleans()):
            out = replace(base, stride=max(base.stride, 16))
        operands["out"] = replace(out, pointer=base.pointer + shift)
    elif kind == "residual":
        if not plan.c.exists:
            operands["c"] = Operand(9 * FAR, 0, 0)
        else:
            operands["c"] = replace(operands["out"], batch_stride=operands["out"].batch_stride + 16)
    elif kind == "factor":
        which = "alpha" if not plan.c.exists else draw(st.sampled_from(("alpha", "beta")))
        return replace(problem, **{which: draw(st.sampled_from(FACTORS))})
    elif kind == "extent":
        which = draw(st.sampled_from(("batch", "m", "n", "k")))
        values = (0, 1, LARGEST_EXTENT, LARGEST_EXTENT + 1, 2**31 - 1, 2**31, 2**40)
        unit = plan.elements_per_byte if which == "k" else 1
        return replace(problem, **{which: draw(st.sampled_from(values)) // unit * unit})
    elif kind == "scales":
        return _change_scales(draw, plan, problem)
    elif kind == "rows":
        return _change_rows(draw, plan, problem)
    elif kind == "written":
        return _change_written(draw, plan, problem)
    return replace(problem, operands=operands)


KINDS = (
    "address", "stride", "batch_stride", "overlap", "residual", "factor", "extent", "scales",
    "rows", "written",
)  # fmt: skip


@st.composite
def any_problems(draw: Any, plan: GemmPlan) -> GemmProblem:
    """Problems with up to three changes."""
    problem = draw(sound_problems(plan))
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)):
        problem = _change(draw, plan, problem, kind)
    return problem


def empty_problem(plan: GemmPlan) -> GemmProblem:
    """A problem without elements whose addresses and strides mean nothing."""
    operands = dict.fromkeys(names(plan), Operand(1, WILD, WILD))
    scales = {row.name: Scales(1, WILD, WILD, WILD) for row in plan.scales}
    index = Index(1, WILD, 5) if plan.gathers_rows else None
    return GemmProblem(
        0, 9, unit_of(plan) + 8, 9, operands, 1.0, 1.0, scales, _rows_of(plan), index,
        _plain_written(plan, 9),
    )  # fmt: skip


def _plain_written(plan: GemmPlan, rows: int) -> Written:
    if plan.scatters_rows:
        return Written(13 << 40, 14 << 40, rows)
    if plan.finds_amax:
        return Written(out_amax=13 << 40)
    if plan.output_scales is None:
        return Written()
    blocks = plan.output_scales.blocks(plan.output_columns(256))
    of_tensor = 14 << 40 if plan.output_scales.has_tensor_scale else None
    scales = Scales(13 << 40, 256 * blocks, blocks, 1)
    if plan.output_scales.in_atoms:
        along = -(-blocks // 4) * ATOM_BYTES
        scales = Scales(13 << 40, 4 * along, along, ATOM_BYTES)
    return Written(out_scales=scales, out_tensor_scale=of_tensor)


def plain_problem(plan: GemmPlan, **changes: Any) -> GemmProblem:
    """Two contiguous products of 256 by 256 by 256 with C, whose matrices lie apart."""
    matrices = {
        name: Operand((place + 1) << 40, 256 * 256, 256) for place, name in enumerate(names(plan))
    }
    scales = {
        row.name: Scales((place + 7) << 40, 512, 2, 1) for place, row in enumerate(plan.scales)
    }
    if plan.scales and plan.scales[0].in_tensor_cores:
        along = 256 // plan.scales[0].columns
        strides = (1024 * along // 4, 512 * along // 4, 512)
        strides = strides if plan.scales[0].in_atoms else (256 * along, along, 1)
        scales = {name: Scales(one.data, *strides) for name, one in scales.items()}
    index = Index(11 << 40, 256, 256) if plan.gathers_rows else None
    problem = GemmProblem(
        batch=2, m=256, n=256, k=256, operands=matrices, alpha=1.0, beta=1.0, scales=scales,
        rows=_rows_of(plan), index=index, written=_plain_written(plan, 256),
    )  # fmt: skip
    return replace(problem, **changes)
