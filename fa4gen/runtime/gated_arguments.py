"""The columns of B: a check of their number; with a gated activation, gate and up apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

SCALED_COLUMNS = 128
AXES = ("batch", "k", "half", "n")


def check_columns(plan: GemmPlan, n: int) -> Iterator[Problem]:
    """Yield a problem for a number of columns of B that is not a multiple of the kernel's unit."""
    unit = plan.columns_of_b(plan.column_unit)
    if n % unit == 0:
        return
    why = "gate and up have a column each"
    if plan.column_unit == plan.out_elements_per_byte > 1:
        why = "two elements of the output share a byte"
    elif plan.scatters_rows:
        why = "rows of the output are stored by 16 bytes"
    elif plan.gate_layout == "halves":
        why = "gate has the first half of the columns and up the other"
    if plan.gated and plan.column_unit >= SCALED_COLUMNS:
        why += ", and no scale, or atom of scales, is for columns of both"
    elif plan.gated and plan.column_unit > 1:
        why += ", which begins at a multiple of 16 bytes"
    yield wrong("b", f"{n} columns", f"a multiple of {unit}: {why}")


def wrong_shape(
    plan: GemmPlan,
    name: str,
    view: TensorView,
    axes: tuple[str, ...],
    extents: Mapping[str, int],
) -> Iterator[Problem]:
    """Yield the error of an argument whose shape is not that of its axes; n is that of B."""
    share = 2 if plan.gated and (name == "out" or (name == "c" and plan.c.is_matrix)) else 1
    if name == "out":
        share *= plan.out_elements_per_byte
    expected = tuple(extents[axis] // (share if axis == "n" else 1) for axis in axes)
    if view.shape != expected:
        words = ", ".join(f"n / {share}" if share > 1 and axis == "n" else axis for axis in axes)
        yield wrong(name, f"{view.shape}", f"({words}) = {expected}")


def with_halves(plan: GemmPlan, view: TensorView) -> TensorView:
    """Return B, (batch, k, n), with the axes AXES: the columns of gate, and those of up."""
    batch, k, n = view.shape
    by_batch, by_k, by_n = view.strides
    columns = n // 2
    interleaved = plan.gate_layout == "interleaved"
    strides = (by_n, 2 * by_n) if interleaved else (columns * by_n, by_n)
    return view._replace(shape=(batch, k, 2, columns), strides=(by_batch, by_k, *strides))
