"""A case of verify as a call of a vendored kernel: its tensors as the structs of the ABI."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from fa4gen.errors import Fa4genError, Problem
from fa4gen.vendor.binding import AttentionArgs, GemmArgs, Matrix, Prepared, Tensor
from fa4gen.verify.gemm.memory import GemmMemory
from fa4gen.verify.memory import AttentionMemory
from fa4gen.verify.rounding import numpy_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.plan.gemm_model import GemmPlan
    from fa4gen.plan.plans import Plan
    from fa4gen.vendor.binding import Args, KernelBinding
    from fa4gen.verify.buffers import CaseMemory, View


class CallError(Fa4genError):
    """The launcher refused a call, or made another one than it has to."""


def make_args(plan: Plan, memory: CaseMemory, addresses: Mapping[str, int]) -> Args:
    """Return the arguments of a case, whose tensors begin at ``addresses``; no workspace yet."""
    if isinstance(memory, AttentionMemory):
        return _attention_args(memory, addresses)
    assert isinstance(memory, GemmMemory)
    return _gemm_args(plan, memory, addresses)


def call(kernel: KernelBinding, args: Args, stream: int, *, prepared: bool) -> None:
    """Launch by the kernel's own function, or prepare and launch; CallError where it is refused.

    What is prepared is moved, and the arguments are overwritten, before it is launched.
    """
    library = kernel.library
    if not prepared:
        _check(kernel, kernel.launch(ctypes.byref(args), stream))
        return
    first, moved = Prepared(), Prepared()
    _check(kernel, library.prepare(kernel.handle, ctypes.byref(args), ctypes.byref(first)))
    size = ctypes.sizeof(Prepared)
    ctypes.memmove(ctypes.byref(moved), ctypes.byref(first), size)
    ctypes.memset(ctypes.byref(first), 0xFF, size)
    ctypes.memset(ctypes.byref(args), 0xFF, ctypes.sizeof(args))
    _check(kernel, library.launch_prepared(ctypes.byref(moved), stream))


def workspace_bytes(kernel: KernelBinding, args: Args) -> int:
    """Return how many bytes of workspace a call needs; CallError for a negative number."""
    needed = int(kernel.workspace_bytes(ctypes.byref(args)))
    if needed < 0:
        raise CallError(Problem(f"{kernel.symbol}_workspace_bytes returned {needed}", ""))
    return needed


def init_workspace(kernel: KernelBinding, pointer: int, num_bytes: int, stream: int) -> None:
    """Enqueue the zeroing of a workspace; CallError where that is refused."""
    _check(kernel, kernel.library.workspace_init(pointer, num_bytes, stream))


def _check(kernel: KernelBinding, status: int) -> None:
    if status:
        words = kernel.library.words(status)
        raise CallError(
            Problem(f"{kernel.symbol} refused the call with status {status:#x}: {words}", "")
        )


def _attention_args(memory: AttentionMemory, addresses: Mapping[str, int]) -> AttentionArgs:
    views = memory.views
    heads_first = memory.layout == "bhsd"

    def extents(view: View) -> tuple[int, int, int]:
        batch, rows, heads = view.shape[:3]
        return (batch, heads, rows) if heads_first else (batch, rows, heads)

    def tensor(name: str) -> Tensor:
        element = numpy_dtype(views[name].dtype).itemsize
        batch, rows, heads = (stride // element for stride in views[name].strides[:3])
        if heads_first:
            rows, heads = heads, rows
        return Tensor(addresses[name], batch, rows, heads)

    batch, query_rows, query_heads = extents(views["query"])
    _, key_rows, key_heads = extents(views["key"])
    return AttentionArgs(
        struct_size=ctypes.sizeof(AttentionArgs),
        batch=batch,
        query_rows=query_rows,
        key_rows=key_rows,
        query_heads=query_heads,
        key_heads=key_heads,
        query=tensor("query"),
        key=tensor("key"),
        value=tensor("value"),
        out=tensor("out"),
        lse=addresses.get("lse"),
        query_descale=addresses.get("query_descale"),
        key_descale=addresses.get("key_descale"),
        value_descale=addresses.get("value_descale"),
        softmax_scale=0.0 if memory.softmax_scale is None else memory.softmax_scale,
    )


def _gemm_args(plan: Any, memory: GemmMemory, addresses: Mapping[str, int]) -> GemmArgs:
    views = memory.views

    def matrix(name: str, *, rows: int) -> Matrix:
        """``rows``: of the two axes, the one that is not contiguous; -1: there is only one."""
        view = views[name]
        element = numpy_dtype(view.dtype).itemsize
        axes = 2 if rows >= 0 else 1
        batched = len(view.shape) > axes
        own = view.strides[-axes:]
        return Matrix(
            addresses[name],
            view.strides[0] // element if batched else 0,
            own[rows] // element if rows >= 0 else 0,
        )

    gemm: GemmPlan = plan
    out = views["out"]
    m, n = out.shape[-2:]
    args = GemmArgs(
        struct_size=ctypes.sizeof(GemmArgs),
        batch=out.shape[0] if len(out.shape) == 3 else 1,
        m=m,
        n=n,
        k=views["a"].shape[-1],
        a=matrix("a", rows=0 if gemm.a_major == "k" else 1),
        b=matrix("b", rows=1 if gemm.b_major == "k" else 0),
        out=matrix("out", rows=0),
        alpha=memory.alpha,
        beta=memory.beta,
    )
    if "c" in views:
        args.c = matrix("c", rows=-1 if gemm.residual == "row" else 0)
    return args
