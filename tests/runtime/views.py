"""Plans, views and refusals that the tests of the runtime have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import validated
from fa4gen.errors import ArgumentError
from fa4gen.runtime.tensor_view import TensorView

if TYPE_CHECKING:
    from collections.abc import Callable

GAP = 1 << 32
"""Bytes from one array to the next."""
ELEMENT_BYTES = {
    "uint8": 1, "float8_e4m3fn": 1, "bfloat16": 2, "float16": 2, "int32": 4, "float32": 4,
    "int64": 8, "float64": 8,
}  # fmt: skip


def make_plan(**keys: Any) -> Any:
    """Return the plan of a config of attention."""
    config = {"kernel": "attention", "name": "probe", "arch": "sm_90a", "dtype": "bf16"}
    return build_plan(validated({**config, "depth": 128, **keys}))


def gemm_plan(**keys: Any) -> Any:
    """Return the plan of a config of a matrix product."""
    data = {"kernel": "gemm", "arch": "sm_90a", "dtype": "bf16"}
    return build_plan(config_from_data({**data, **keys}, "probe"))


def array(
    shape: tuple[int, ...], at: int, dtype: str = "bfloat16", *, swapped: bool = False
) -> TensorView:
    """Return the view of array number ``at``; ``swapped``: its last axis but one is contiguous."""
    order = list(range(len(shape)))
    if swapped:
        order[-2:] = reversed(order[-2:])
    strides = [0] * len(shape)
    step = ELEMENT_BYTES[dtype]
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return TensorView(at * GAP, tuple(shape), tuple(strides), dtype, 0)


def changed(arguments: Any, changes: dict[str, Any]) -> Any:
    """Return arguments with others in place of some, or with other fields in some."""
    for name, change in changes.items():
        old = getattr(arguments, name)
        new = old._replace(**change) if isinstance(change, dict) else change
        arguments = arguments._replace(**{name: new})
    return arguments


def refused(check: Callable[[Any, Any], object], plan: Any, arguments: Any) -> list[str]:
    """Return what a check says of wrong arguments, without the remedies."""
    with pytest.raises(ArgumentError) as caught:
        check(plan, arguments)
    return [problem.message for problem in caught.value.problems]
