"""Checks of the int32 arrays of a call that say where sequences are: offsets, lengths, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.shared.attention_model import AttentionPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

INT32_BYTES = 4


def check_tables(
    plan: AttentionPlan, tables: dict[str, TensorView | None], query: TensorView
) -> Iterator[Problem]:
    """Check the arrays by argument name; the query is (batch, rows, heads, depth).

    What they hold is on the GPU and is not checked: offsets must not decrease, and the last one is
    at most the rows of the tensor.
    """
    wanted = {table.name: table for table in (*plan.query_source.tables, *plan.key_source.tables)}
    first = next((tables[name] for name in wanted if tables[name] is not None), None)
    for name, view in tables.items():
        if view is None:
            if name in wanted:
                yield wrong(name, "nothing", f"int32 ({', '.join(wanted[name].axes)})")
        elif name not in wanted:
            keys = f"batching: {plan.batching}, keys: {plan.keys}"
            remedy = f"this kernel was generated with {keys}"
            yield wrong(name, "an array", f"no {name}", remedy)
        else:
            assert first is not None
            yield from _check_table(name, view, wanted[name].axes, first, query)


def _check_table(
    name: str, view: TensorView, axes: tuple[str, ...], first: TensorView, query: TensorView
) -> Iterator[Problem]:
    words = f"({', '.join(axes)})"
    if view.dtype != "int32":
        yield wrong(name, view.dtype, "int32")
    if view.device < 0:
        yield wrong(name, "memory of the CPU", "memory of a CUDA device")
        return
    if view.device != query.device and query.device >= 0:
        yield wrong(name, f"device {view.device}", f"the query's device, {query.device}")
    if len(view.shape) != len(axes):
        yield wrong(name, f"{len(view.shape)} axes {view.shape}", f"{len(axes)} axes {words}")
        return
    if axes[0] == "sequences + 1" and view.shape[0] == 0:
        yield wrong(name, "no element", "sequences + 1 of them")
    elif view.shape[0] != first.shape[0]:
        yield wrong(name, f"shape {view.shape}", f"as many as the other offsets: {first.shape[0]}")
    expected = INT32_BYTES
    for extent, stride in zip(reversed(view.shape), reversed(view.strides), strict=True):
        if extent > 1 and stride != expected:
            yield wrong(name, f"strides of {view.strides} bytes", "a contiguous array")
            break
        expected *= extent
    if view.pointer % INT32_BYTES:
        yield wrong(name, f"{view.pointer:#x}", "an address that is a multiple of 4 bytes")
