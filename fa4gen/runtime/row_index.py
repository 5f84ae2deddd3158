"""The index of gathered rows among the arguments of a matrix product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import unwanted, wrong
from fa4gen.runtime.schedule import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

ROW_INDEX = "row_index"
A_AXES = ("batch", "rows", "k")
"""The axes of an A whose rows are gathered: it has another number of them than the output."""
INDEX_AXES = ("batch", "m")
INDEX_BYTES = 4
CHUNK_BYTES = 16
MOST_BYTES = CHUNK_BYTES * INT32_MAX
"""The kernel numbers chunks of A by int32."""


def check_row_index(plan: GemmPlan, view: TensorView | None) -> list[Problem]:
    """Return a problem for an index that a kernel has not, and for one that it lacks."""
    if not plan.gathers_rows and view is not None:
        return [unwanted(ROW_INDEX, "this kernel was generated with rows: contiguous")]
    if plan.gathers_rows and view is None:
        expected = "int32 (m,), a row of A for each row of the output (rows: gathered)"
        return [wrong(ROW_INDEX, "nothing", expected)]
    if view is not None and view.dtype != "int32":
        return [wrong(ROW_INDEX, view.dtype, "int32", "pass a copy of row_index in int32")]
    return []


def index_rows(a: TensorView, index: TensorView) -> tuple[int, ...] | None:
    """Return the rows of the output, after a batch if there is one; None for a wrong index."""
    if len(index.shape) not in (1, 2):
        return None
    lead = a.shape[:-2] if len(a.shape) == 3 else index.shape[:-1]  # masked groups share A
    return (*lead, index.shape[-1])


def check_row_places(views: Mapping[str, TensorView]) -> list[Problem]:
    """Check strides and the address of the index, and that the kernel can number A's chunks."""
    index, a = views[ROW_INDEX], views["a"]
    problems = []
    strides = dict(zip(INDEX_AXES, index.strides, strict=True))
    extents = dict(zip(INDEX_AXES, index.shape, strict=True))
    places = index.pointer, strides["batch"] if extents["batch"] > 1 else 0
    apart = extents["m"] > 1 and strides["m"] != INDEX_BYTES
    if 0 not in index.shape and (apart or any(place % INDEX_BYTES for place in places)):
        expected = f"contiguous elements at a multiple of {INDEX_BYTES} bytes"
        got = f"{index.pointer:#x} and strides of {index.strides} bytes"
        problems.append(wrong(ROW_INDEX, got, expected, "pass a contiguous copy of row_index"))
    if a.shape[1] > 1 and 0 not in a.shape and a.shape[1] * a.strides[1] > MOST_BYTES:
        expected = f"rows within {MOST_BYTES} bytes, for an index of rows"
        got = f"{a.shape[1]} rows, {a.strides[1]} bytes apart"
        problems.append(
            wrong("a", got, expected, "pass a contiguous copy of a, or part of its rows")
        )
    return problems


def gathered_values(a: TensorView, index: TensorView) -> dict[str, int]:
    """Return the kernel's parameters in place of A's tensor map, by name."""
    strides = (0, 0, 0) if 0 in a.shape else a.strides  # of an empty A, which may be any
    return {
        "a": a.pointer,
        "a_row_chunks": strides[1] // CHUNK_BYTES if a.shape[1] > 1 else 0,
        "a_batch_bytes": strides[0] if a.shape[0] > 1 else 0,
        "a_rows": a.shape[1],
        ROW_INDEX: index.pointer,
        f"{ROW_INDEX}_batch_stride": index.strides[0] // INDEX_BYTES if index.shape[0] > 1 else 0,
    }
