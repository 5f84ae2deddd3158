"""The axes of a call's tensors: batches or packed rows, and the order of rows and heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

AXES = {"bshd": ("batch", "rows", "heads", "depth"), "bhsd": ("batch", "heads", "rows", "depth")}


def with_batch(view: TensorView) -> TensorView:
    """Return a view of ragged rows as one batch of them all."""
    return view._replace(shape=(1, *view.shape), strides=(0, *view.strides))


def is_packed(plan: AttentionPlan, name: str) -> bool:
    """Whether a tensor has the rows of all sequences, without an axis of batches."""
    source = plan.query_source if name in ("query", "out") else plan.key_source
    return source.name == "ragged"


def axes_of(plan: AttentionPlan, name: str, layout: str) -> tuple[str, ...]:
    """Return the names of a tensor's axes for the caller."""
    return AXES[layout][1:] if is_packed(plan, name) else AXES[layout]


def wrong_axes(plan: AttentionPlan, views: dict[str, TensorView], layout: str) -> Iterator[Problem]:
    """Yield every tensor that has not the axes of its kind."""
    for name, view in views.items():
        axes = axes_of(plan, name, layout)
        if len(view.shape) != len(axes):
            got = f"{len(view.shape)} axes {view.shape}"
            yield wrong(name, got, f"{len(axes)} axes ({', '.join(axes)})")


def swap_rows_and_heads(view: TensorView) -> TensorView:
    """Return a view (batch, heads, rows, depth) as (batch, rows, heads, depth), or the reverse."""
    b, h, s, d = view.shape
    batch, heads, rows, depth = view.strides
    return view._replace(shape=(b, s, h, d), strides=(batch, rows, heads, depth))
