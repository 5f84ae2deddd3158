"""Calls of a vendored kernel with the tensors of verify's cases."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from fa4gen.errors import Fa4genError, Problem
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.vendoring.binding import Prepared
from fa4gen.vendoring.family import family_of
from fa4gen.vendoring.kernel_facts import launcher_facts
from fa4gen.verify.emulator import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.plans import Plan
    from fa4gen.vendoring.binding import Args, KernelBinding
    from fa4gen.verify.buffers import CaseMemory


class CallError(Fa4genError):
    """The launcher refused a call, or made another one than it has to."""


def make_args(plan: Plan, memory: CaseMemory, addresses: Mapping[str, int]) -> Args:
    """Return the arguments of a case, whose tensors begin at ``addresses``; no workspace yet."""
    views = {
        name: TensorView(addresses[name], view.shape, view.strides, WORDS[view.dtype], 0)
        for name, view in memory.views.items()
    }
    return family_of(plan).case_args(plan, views, memory)


def counter_bytes(plan: Plan) -> int:
    """Return how many bytes of a workspace, the first ones, each launch has to leave zero."""
    return launcher_facts(plan).workspace_bytes


def call(kernel: KernelBinding, args: Args, stream: int, *, prepared: bool) -> None:
    """Launch by the kernel's own function, or prepared by a graph; CallError where it is refused.

    What is prepared is moved, and the arguments are overwritten, before the graph is made, from the
    very launch that would have been made.
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
    _check(kernel, library.prepare_graph(ctypes.byref(moved)))
    try:
        _check(kernel, library.launch_prepared(ctypes.byref(moved), stream))
    finally:
        _check(kernel, library.release_graph(ctypes.byref(moved)))


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
