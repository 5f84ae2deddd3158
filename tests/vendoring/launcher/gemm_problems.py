"""Random matrix products, each as the C struct and as fa4gen.runtime's arguments."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fa4gen.runtime.gemm_arguments import GEMM_DTYPES, LARGEST_EXTENT, GemmArguments
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.vendoring.binding import GemmArgs, Matrix
from tests.vendoring.launcher.attention_problems import FAR, WILD

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan

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
class GemmProblem:
    batch: int
    m: int
    n: int
    k: int
    operands: dict[str, Operand]
    """c is absent where the kernel takes none."""
    alpha: float
    beta: float

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
            alpha=self.alpha,
            beta=self.beta,
        )

    def python_arguments(self, plan: GemmPlan) -> GemmArguments:
        views = {name: self._view(plan, name) for name in self.operands}
        return GemmArguments(
            views["a"], views["b"], views.get("c"), views["out"], self.alpha, self.beta
        )

    def outer_and_inner(self, plan: GemmPlan, name: str) -> tuple[int, int]:
        if name == "a":
            return (self.m, self.k) if plan.a_major == "k" else (self.k, self.m)
        if name == "b":
            return (self.n, self.k) if plan.b_major == "k" else (self.k, self.n)
        extents = plan.c.extents(self.m, self.n) if name == "c" else (self.m, self.n)
        return (1, *extents)[-2:]

    def _view(self, plan: GemmPlan, name: str) -> TensorView:
        one = self.operands[name]
        size = element_bytes(plan, name)
        dtype = GEMM_DTYPES[plan.dtype if name in ("a", "b") else plan.out_dtype]
        shapes = {"a": (self.m, self.k), "b": (self.k, self.n), "out": (self.m, self.n)}
        shape = (
            plan.c.extents(self.m, self.n)
            if name == "c" and plan.c.exists
            else shapes.get(name, ())
        )
        if len(shape) == 1:
            strides = (size,)
        elif (name == "a" and plan.a_major == "m") or (name == "b" and plan.b_major == "k"):
            strides = (size, one.stride * size)
        else:
            strides = (one.stride * size, size)
        return TensorView(
            one.pointer, (self.batch, *shape), (one.batch_stride * size, *strides), dtype, 0
        )


def element_bytes(plan: GemmPlan, name: str) -> int:
    return plan.element_bytes if name in ("a", "b") else plan.out_element_bytes


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
        n=draw(extents),
        k=draw(extents),
        operands={},
        alpha=draw(factors),
        beta=1.0 if not plan.c.exists else draw(factors),
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
    return replace(problem, operands=operands)


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
        return replace(problem, **{which: draw(st.sampled_from(values))})
    return replace(problem, operands=operands)


KINDS = ("address", "stride", "batch_stride", "overlap", "residual", "factor", "extent")


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
    return GemmProblem(0, 9, 9, 9, operands, 1.0, 1.0)


def plain_problem(plan: GemmPlan, **changes: Any) -> GemmProblem:
    """Two contiguous products of 256 by 256 by 256 with C, whose matrices lie apart."""
    matrices = {
        name: Operand((place + 1) << 40, 256 * 256, 256) for place, name in enumerate(names(plan))
    }
    problem = GemmProblem(
        batch=2, m=256, n=256, k=256, operands=matrices, alpha=1.0, beta=1.0
    )  # fmt: skip
    return replace(problem, **changes)
