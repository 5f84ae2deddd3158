"""The workspace of a kernel whose CTAs share keys: tickets, then their partial results.

Tickets are zero before and after every launch; partial results from before a launch are not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import unwanted, wrong, wrong_address, wrong_device
from fa4gen.runtime.strides import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

ELEMENT_BYTES = {"uint8": 1, "int8": 1, "int32": 4, "float32": 4}


def workspace_values(plan: AttentionPlan, address: int) -> dict[str, int]:
    """Return the kernel's parameters for a workspace at ``address``, by name."""
    return {"tickets": address, "partials": address + plan.ticket_bytes}


def check_workspace(plan: AttentionPlan, view: TensorView | None, device: int) -> Iterator[Problem]:
    """Check the workspace of a call; how large it has to be depends on the GPU."""
    if view is None:
        return
    if not plan.splits_keys:
        remedy = "kernels with pack_heads: true take one"
        yield unwanted("workspace", remedy)
        return
    if view.dtype not in ELEMENT_BYTES:
        yield wrong("workspace", view.dtype, " or ".join(ELEMENT_BYTES))
    elif len(view.shape) != 1 or view.strides[0] not in (0, ELEMENT_BYTES[view.dtype]):
        got = f"shape {view.shape}, strides of {view.strides} bytes"
        yield wrong("workspace", got, "one contiguous axis")
    yield from wrong_device("workspace", view.device, device)
    yield from wrong_address("workspace", view.pointer, ALIGNMENT)


def check_workspace_size(
    plan: AttentionPlan, view: TensorView | None, multiprocessors: int, line: int
) -> Iterator[Problem]:
    """Check that a call's workspace is large enough for a GPU with this number of multiprocessors.

    ``line``: the ``num_tiles`` of the schedule.
    """
    if view is None:
        return
    given, needed = view_bytes(view), plan.workspace_bytes(multiprocessors, line)
    if given < needed:
        remedy = "workspace_bytes() of the kernel says how many"
        yield wrong("workspace", f"{given} bytes", f"{needed} bytes or more", remedy)


def view_bytes(view: TensorView) -> int:
    """Return the bytes of a workspace that has been checked."""
    return view.shape[0] * ELEMENT_BYTES[view.dtype]
