"""Scattered rows of the output among the arguments of a matrix product: their index and weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fa4gen.runtime.refusal import unwanted, wrong
from fa4gen.runtime.row_index import CHUNK_BYTES, INDEX_AXES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

SCATTERED: Final = {"out_index": "int32", "row_weights": "float32"}
"""The arrays with an element for each row of the product, and their types."""
OUT_AXES = ("batch", "out_rows", "n")
"""The axes of an output whose rows an index names: it has any number of them."""
SCATTERED_AXES = INDEX_AXES
ELEMENT_BYTES = 4


def check_scattered(
    plan: GemmPlan, given: Mapping[str, TensorView | None], out: TensorView | None
) -> Iterator[Problem]:
    """Yield problems for arrays that a kernel has not, or lacks, and for a missing output."""
    for name, view in given.items():
        if plan.scatters_rows and view is None:
            yield wrong(name, "nothing", f"{SCATTERED[name]} (m,) (out_rows: scattered)")
        elif view is not None and not plan.scatters_rows:
            yield unwanted(name, "this kernel was generated with out_rows: contiguous")
        elif view is not None and view.dtype != SCATTERED[name]:
            yield wrong(name, view.dtype, SCATTERED[name])
    if plan.scatters_rows and out is None:
        yield wrong("out", "nothing", "an array (out_rows, n), whose rows out_index names")


def check_scattered_places(views: Mapping[str, TensorView]) -> Iterator[Problem]:
    """Yield problems of the strides and addresses of these arrays."""
    for name in SCATTERED:
        view = views[name]
        apart = view.shape[-1] > 1 and view.strides[-1] != ELEMENT_BYTES
        if 0 not in view.shape and (apart or view.pointer % ELEMENT_BYTES):
            expected = f"contiguous elements at a multiple of {ELEMENT_BYTES} bytes"
            got = f"{view.pointer:#x} and strides of {view.strides} bytes"
            yield wrong(name, got, expected, f"pass a contiguous copy of {name}")


def scattered_values(out: TensorView, given: Mapping[str, TensorView]) -> dict[str, int]:
    """Return the kernel's parameters in place of the output's tensor map, by name."""
    return {
        "out": out.pointer,
        "out_row_chunks": out.strides[1] // CHUNK_BYTES if out.shape[1] > 1 else 0,
        "out_rows": 0 if 0 in out.shape else out.shape[1],
        **{name: view.pointer for name, view in given.items()},
    }
