"""The arguments of a call as the C launcher takes them: extents, and strides in elements.

Shapes that the C structs cannot say, such as a value of other rows than the key's, are the caller's
mistake here: nothing is checked but what has no place in a struct.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from fa4gen.vendor.binding import AttentionArgs, GemmArgs, Matrix, Tensor

if TYPE_CHECKING:
    from fa4gen.designs.shared.attention_model import AttentionPlan
    from fa4gen.designs.shared.gemm_model import GemmPlan
    from fa4gen.runtime.arguments import Arguments
    from fa4gen.runtime.gemm_arguments import GemmArguments
    from fa4gen.runtime.tensor_view import TensorView

BSHD = ("batch", "rows", "heads")


def attention_args(plan: AttentionPlan, arguments: Arguments) -> AttentionArgs:
    """Return the struct of a call; ``workspace`` is left empty. ValueError without an output.

    A softmax scale of 0, which stands for the default in C, is not one that Python takes.
    """
    axes = dict(zip(BSHD, (0, 1, 2) if arguments.layout == "bshd" else (0, 2, 1), strict=True))
    if arguments.out is None:
        raise ValueError("no output")

    def tensor(view: TensorView, element_bytes: int) -> Tensor:
        strides = (_elements(view.strides[axes[axis]], element_bytes) for axis in BSHD)
        return Tensor(view.pointer, *strides)

    query, key = arguments.query, arguments.key
    args = AttentionArgs(
        struct_size=ctypes.sizeof(AttentionArgs),
        batch=query.shape[0],
        query_rows=query.shape[axes["rows"]],
        key_rows=key.shape[axes["rows"]],
        query_heads=query.shape[axes["heads"]],
        key_heads=key.shape[axes["heads"]],
        query=tensor(query, plan.element_bytes),
        key=tensor(key, plan.element_bytes),
        value=tensor(arguments.value, plan.element_bytes),
        out=tensor(arguments.out, plan.out_element_bytes),
        softmax_scale=arguments.softmax_scale,
    )
    for name, view in (("lse", arguments.lse), *arguments.descales.items()):
        setattr(args, name, None if view is None else view.pointer)
    return args


def gemm_args(plan: GemmPlan, arguments: GemmArguments) -> GemmArgs:
    """Return the struct of a call; ``workspace`` is left empty. ValueError without an output."""
    a, b, c, out = arguments.a, arguments.b, arguments.c, arguments.out
    if out is None:
        raise ValueError("no output")

    def matrix(view: TensorView, axes: int, element_bytes: int, contiguous: int) -> Matrix:
        """``axes`` without the batch; ``contiguous`` is 0 or 1 of them."""
        strides = [_elements(stride, element_bytes) for stride in view.strides]
        batch = strides[0] if len(strides) > axes else 0
        return Matrix(view.pointer, batch, strides[-2:][1 - contiguous] if axes == 2 else 0)

    has_batch = len(a.shape) == 3
    args = GemmArgs(
        struct_size=ctypes.sizeof(GemmArgs),
        batch=a.shape[0] if has_batch else 1,
        m=a.shape[-2],
        n=b.shape[-1],
        k=a.shape[-1],
        a=matrix(a, 2, plan.element_bytes, 1 if plan.a_major == "k" else 0),
        b=matrix(b, 2, plan.element_bytes, 1 if plan.b_major == "n" else 0),
        out=matrix(out, 2, plan.out_element_bytes, 1),
        alpha=arguments.alpha,
        beta=arguments.beta,
    )
    if c is not None:
        args.c = matrix(c, len(plan.c.axes), plan.out_element_bytes, 1)
    return args


def _elements(stride: int, element_bytes: int) -> int:
    if stride % element_bytes:
        raise ValueError(
            f"a stride of {stride} bytes is no number of {element_bytes}-byte elements"
        )
    return stride // element_bytes
