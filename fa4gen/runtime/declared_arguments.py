"""Checks of the tensors that a config declares: what mask and score function read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.float32_arguments import check_words
from fa4gen.runtime.refusal import wrong

if TYPE_CHECKING:
    from fa4gen.designs.shared.attention_model import AttentionPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

DTYPES = {"fp32": "float32", "int32": "int32"}


def check_declared(
    plan: AttentionPlan,
    given: dict[str, TensorView | None],
    query: TensorView,
    key: TensorView,
) -> list[Problem]:
    """Check the tensors by name; query and key are (batch, rows, heads, depth).

    What they hold is on the GPU and is not checked.
    """
    declared = {tensor.name: tensor for tensor in plan.declared_tensors}
    extents = {
        "batch": query.shape[0],
        "query_heads": query.shape[2],
        "key_heads": key.shape[2],
        "rows": query.shape[1],
        "keys": key.shape[1],
    }
    problems = []
    for name in given:
        if name not in declared:
            known = f"parameters are {', '.join(declared)}" if declared else "it has no parameters"
            remedy = f"this kernel was generated without it: {known}"
            problems.append(wrong(name, "an array", f"no {name}", remedy))
    for name, tensor in declared.items():
        shape = tuple(extents[one] if isinstance(one, str) else one for one in tensor.shape)
        view, axes = given.get(name), f"({tensor.axes})"
        if view is None:
            problems.append(wrong(name, "nothing", f"{DTYPES[tensor.dtype]} {axes} = {shape}"))
        else:
            problems += check_words(name, view, query.device, shape, axes, DTYPES[tensor.dtype])
    return problems
