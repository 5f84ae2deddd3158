"""Plans, views and refusals that the tests of the runtime have in common."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fa4gen.config.load import config_from_data
from fa4gen.designs.build import build_plan
from fa4gen.designs.registry import validated
from fa4gen.errors import ArgumentError
from fa4gen.runtime.parameters import pack
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


def packed_values(plan: Any, values: dict[str, Any]) -> dict[str, int | float]:
    """Return what the kernel's parameters hold, maps left out, read back by their types."""
    maps = {row.parameter: bytes(128) for row in plan.tensor_maps}
    block = pack(plan.parameters, {**values, **maps})
    kinds = {"pointer": "Q", "int64": "q", "int32": "i", "float": "f"}
    read = {}
    for i, row in enumerate(plan.parameters):
        kind = next((kind for kind in kinds if kind in row.c_type.replace("*", "pointer")), None)
        if kind is not None and row.name not in maps:
            size = struct.calcsize(kinds[kind])
            (read[row.name],) = struct.unpack(f"<{kinds[kind]}", block.value(i, size))
    return read


class DriverWithoutMaps:
    """A driver that refuses every tensor map, and keeps what it was asked for."""

    class _Words:
        def __getattr__(self, name: str) -> str:
            return name

    CUtensorMapDataType = CUtensorMapSwizzle = CUtensorMapInterleave = _Words()
    CUtensorMapL2promotion = CUtensorMapFloatOOBfill = _Words()
    CUresult = SimpleNamespace(CUDA_SUCCESS=0)
    cuuint64_t = cuuint32_t = int

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> tuple[Any, None]:  # noqa: N802 (its word)
        """Refuse."""
        self.asked.append(arguments)
        return SimpleNamespace(name="CUDA_ERROR"), None


def refused(check: Callable[[Any, Any], object], plan: Any, arguments: Any) -> list[str]:
    """Return what a check says of wrong arguments, without the remedies."""
    with pytest.raises(ArgumentError) as caught:
        check(plan, arguments)
    return [problem.message for problem in caught.value.problems]
