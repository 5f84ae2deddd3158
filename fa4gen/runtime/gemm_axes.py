"""Axes and element types of a matrix product's arguments, by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_parameters import TENSOR_SCALE
from fa4gen.designs.common.gemm_scales import OutputScales
from fa4gen.runtime.arguments import DTYPE_NAMES
from fa4gen.runtime.row_index import A_AXES, INDEX_AXES, INDEX_BYTES, ROW_INDEX
from fa4gen.runtime.scale_arguments import SCALE_BYTES, scales_of
from fa4gen.runtime.scattered_rows import ELEMENT_BYTES, OUT_AXES, SCATTERED, SCATTERED_AXES

if TYPE_CHECKING:
    from fa4gen.designs.common.gemm_model import GemmPlan

GEMM_DTYPES = {
    **DTYPE_NAMES,
    "fp8_e5m2": "float8_e5m2",
    "fp4_e2m1": "float4_e2m1fn_x2",
    "fp32": "float32",
    "ue8m0": "float8_e8m0fnu",
    "ue4m3": "float8_e4m3fn",
    "uint32": "uint32",
    "int32": "int32",
}
AXES = {
    "a": ("batch", "m", "k"),
    "b": ("batch", "k", "n"),
    "out": ("batch", "m", "n"),
    ROW_INDEX: INDEX_AXES,
    **dict.fromkeys(SCATTERED, SCATTERED_AXES),
}
OUTPUTS = ("out", OutputScales.name)
"""The arguments that a kernel writes."""


def named_axes(plan: GemmPlan, name: str) -> tuple[str, ...]:
    """Return the axes of an argument, with a batch in front."""
    scales = scales_of(plan, name)
    if scales is not None:
        return scales.axes
    if name == OutputScales.name and plan.output_scales is not None:
        return plan.output_scales.axes
    if name == "a" and plan.gathers_rows:
        return A_AXES
    if name == "out" and plan.scatters_rows:
        return OUT_AXES
    return plan.c.batched_axes if name == "c" else AXES[name]


def dtype_of(plan: GemmPlan, name: str) -> str:
    """Return the word for an argument's element type, of ``GEMM_DTYPES``."""
    scales = scales_of(plan, name)
    if scales is not None:
        return scales.dtype
    types = {"a": plan.dtype, "b": plan.b_dtype, "c": plan.c_dtype, ROW_INDEX: "int32"}
    types |= {"out_index": "int32", "row_weights": "fp32"}
    if plan.output_scales is not None:
        types[OutputScales.name] = plan.output_scales.dtype
    return types.get(name, plan.out_dtype)


def element_bytes_of(plan: GemmPlan, name: str) -> int:
    """Return the bytes of an element of an argument as the kernel reads it."""
    scales = scales_of(plan, name)
    if scales is not None:
        return SCALE_BYTES["uint32" if scales.in_atoms else GEMM_DTYPES[scales.dtype]]
    if name == ROW_INDEX:
        return INDEX_BYTES
    if name in SCATTERED or name == TENSOR_SCALE:
        return ELEMENT_BYTES
    if name == OutputScales.name:
        return SCALE_BYTES[GEMM_DTYPES[dtype_of(plan, name)]]
    sizes = {"out": plan.out_element_bytes, "c": plan.c_element_bytes}
    return sizes.get(name, plan.element_bytes)
