"""Checks of the int32 arrays of a call that say where sequences are: offsets, lengths, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import unwanted, wrong, wrong_address, wrong_device
from fa4gen.runtime.schedule import INT32_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

INT32_BYTES = 4


def check_tables(
    plan: AttentionPlan, tables: dict[str, TensorView | None], query: TensorView, most_keys: int
) -> Iterator[Problem]:
    """Check the arrays by argument name; the query is (batch, rows, heads, depth).

    A sequence may have ``most_keys``, also by the pages that its row of the table has room for.

    Their contents are on the GPU and are not checked: offsets must not decrease, and the last one
    is at most the rows of the tensor.
    """
    wanted = {table.name: table for table in (*plan.query_source.tables, *plan.key_source.tables)}
    sequences = sequences_of(plan, tables, query)
    for name, view in tables.items():
        if view is None:
            if name in wanted:
                yield wrong(name, "nothing", f"int32 ({', '.join(wanted[name].axes)})")
        elif name not in wanted:
            keys = f"batching: {plan.batching}, keys: {plan.keys}"
            yield unwanted(name, f"this kernel was generated with {keys}")
        else:
            yield from _check_table(name, view, wanted[name].axes, sequences, query)
            most = plan.most_sequences
            if name == "key_lengths" and most is not None and sequences and sequences > most:
                remedy = "split the batch"
                yield wrong(name, f"{sequences} sequences", f"at most {most}", remedy)
            if name == "page_table" and len(view.shape) == 2 and plan.is_paged:
                most_pages = most_keys // plan.key_source.page_rows
                if view.shape[1] > most_pages:
                    got = f"{view.shape[1]} pages of a sequence"
                    yield wrong(name, got, f"at most {most_pages}")


def _check_table(
    name: str, view: TensorView, axes: tuple[str, ...], sequences: int | None, query: TensorView
) -> Iterator[Problem]:
    words = f"({', '.join(axes)})"
    if view.dtype != "int32":
        yield wrong(name, view.dtype, "int32")
    yield from wrong_device(name, view.device, query.device)
    if view.device < 0:  # its address and strides are not known
        return
    if len(view.shape) != len(axes):
        yield wrong(name, f"{len(view.shape)} axes {view.shape}", f"{len(axes)} axes {words}")
        return
    more = 1 if axes[0] == "sequences + 1" else 0
    if view.shape[0] < more:
        yield wrong(name, "no element", "sequences + 1 of them")
    elif sequences is not None and view.shape[0] != sequences + more:
        yield wrong(name, f"shape {view.shape}", f"{axes[0]} = {sequences + more}")
    if view.dtype != "int32":
        return
    if view.shape[-1] > 1 and view.strides[-1] != INT32_BYTES:
        yield wrong(name, f"strides of {view.strides} bytes", "a contiguous array")
    elif len(view.shape) == 2 and (view.strides[0] % INT32_BYTES or view.strides[0] < 0):
        what = f"a multiple of {INT32_BYTES} bytes from one sequence to the next"
        yield wrong(name, f"strides of {view.strides} bytes", what)
    if view.strides[0] // INT32_BYTES > INT32_MAX or max(view.shape) > INT32_MAX:
        yield wrong(name, f"shape {view.shape}", f"extents and strides of at most {INT32_MAX}")
    yield from wrong_address(name, view.pointer, INT32_BYTES)


def sequences_of(
    plan: AttentionPlan, tables: dict[str, TensorView | None], query: TensorView
) -> int | None:
    """Return the number of sequences of a call; None if a ragged batch's offsets do not show it."""
    if not plan.is_ragged:
        return query.shape[0]
    offsets = tables["query_offsets"]
    return None if offsets is None or not offsets.shape else max(0, offsets.shape[0] - 1)
