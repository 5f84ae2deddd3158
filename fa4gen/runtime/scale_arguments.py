"""Scales of blocks among the arguments of a matrix product: what is checked of them alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.gemm_parameters import TENSOR_SCALE
from fa4gen.designs.common.gemm_scales import OutputScales
from fa4gen.runtime.refusal import unwanted, wrong, wrong_device

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.designs.common.gemm_scales import OperandScales
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

SCALE_BYTES = {"float32": 4, "float8_e8m0fnu": 1, "float8_e4m3fn": 1, "uint32": 4}
ATOM_STRIDES = (16, 4, 1)
"""Bytes between lines, groups and bytes of an atom of scales."""
ARRANGED = "pass what fa4gen.scales.arrange returns, or set scale_order: row_major"
PLAIN = "pass what fa4gen.scales.quantize returns, the scales of B transposed"
ATOM_WORDS, WORD_BYTES = 128, 4
AMAX = "out_amax"
"""The array that a kernel raises to the largest magnitude of its output."""


def scales_of(plan: GemmPlan, name: str) -> OperandScales | None:
    """Return the scales that an argument is, None for another one."""
    return next((row for row in plan.scales if row.name == name), None)


def remedy_for_axes(plan: GemmPlan, name: str) -> str:
    """Return the remedy where scales for tensor cores have a wrong number of axes, else nothing."""
    scales = scales_of(plan, name)
    if scales is None or not scales.in_tensor_cores:
        return ""
    return ARRANGED if scales.in_atoms else PLAIN


def check_presence(plan: GemmPlan, name: str, view: TensorView | None) -> list[Problem]:
    """Return a problem for scales that a kernel has not, and for those that it lacks."""
    scales = scales_of(plan, name)
    if scales is None and view is not None:
        return [unwanted(name, "this kernel was generated without scales")]
    if scales is not None and view is None:
        return [wrong(name, "nothing", f"scales {scales.form} of {scales.operand.upper()}")]
    return []


def check_output_scales(
    plan: GemmPlan, view: TensorView | None, out: TensorView | None
) -> list[Problem]:
    """Return a problem for scales of an output that is not quantised, and for missing ones."""
    name, scales = OutputScales.name, plan.output_scales
    if scales is None and view is not None:
        return [unwanted(name, "this kernel was generated without output_scales")]
    if scales is not None and view is None and out is not None:
        return [wrong(name, "nothing", f"an array for the scales {scales.form} of the output")]
    return []


def check_amax(
    plan: GemmPlan, view: TensorView | None, count: int, device: int
) -> Iterator[Problem]:
    """Yield problems of the array that a kernel raises to the largest magnitude, of each group."""
    name = AMAX
    if not plan.finds_amax:
        if view is not None:
            yield unwanted(name, "this kernel was generated without output_scales: amax")
        return
    words = "groups" if plan.config.groups else "1"
    if view is None:
        yield wrong(name, "nothing", f"float32 ({words},), 0 or what is to be raised")
        return
    if view.dtype != "float32":
        yield wrong(name, view.dtype, "float32")
    if view.shape != (count,):
        yield wrong(name, f"{view.shape}", f"({words},) = ({count},)")
    elif (count > 1 and view.strides != (4,)) or view.pointer % 4:
        yield wrong(name, f"strides of {view.strides} bytes", "contiguous elements")
    yield from wrong_device(name, view.device, device, "A's")


def check_tensor_scale(plan: GemmPlan, view: TensorView | None, device: int) -> Iterator[Problem]:
    """Yield problems of the scale of a quantised output's tensor, which the kernel reads."""
    name, scales = TENSOR_SCALE, plan.output_scales
    if scales is None or not scales.has_tensor_scale:
        if view is not None:
            yield unwanted(name, "this kernel was generated without output_scales: nvfp4")
        return
    if view is None:
        remedy = "fa4gen.scales.quantize divides by the amax of the tensor / (448 * 6)"
        yield wrong(name, "nothing", "float32 (1,) on the GPU, above zero", remedy)
        return
    if view.dtype != "float32":
        yield wrong(name, view.dtype, "float32")
    if view.shape != (1,):
        yield wrong(name, f"{view.shape}", "(1,)")
    elif view.pointer % 4:
        yield wrong(name, f"{view.pointer:#x}", "an address that is a multiple of 4 bytes")
    yield from wrong_device(name, view.device, device, "A's")


def check_any_strides(name: str, view: TensorView, size: int) -> list[Problem]:
    """Check address and strides of what a kernel loads by elements of ``size`` bytes."""
    places = (view.pointer, *view.strides)
    if all(place % size == 0 for place in places) and min(view.strides) >= 0:
        return []
    expected = f"an address and strides that are multiples of {size} bytes, none below 0"
    return [wrong(name, f"{view.pointer:#x} and {view.strides}", expected)]


def check_atoms(plan: GemmPlan, views: Mapping[str, TensorView]) -> list[Problem]:
    """Check that atoms of scales are contiguous."""
    return [
        wrong(
            row.name,
            f"strides of {views[row.name].strides[3:]} bytes",
            f"atoms of 512 contiguous bytes: strides of {ATOM_STRIDES} within each",
            ARRANGED,
        )
        for row in plan.scales
        if row.in_atoms and views[row.name].strides[3:] != ATOM_STRIDES
    ]


def check_output_atoms(plan: GemmPlan, view: TensorView) -> list[Problem]:
    """Check that a kernel can write atoms of an output's scales: contiguous, words of four."""
    if plan.output_scales is None or not plan.output_scales.in_atoms:
        return []
    axes = zip(view.shape[:3], view.strides[:3], strict=True)
    places = [view.pointer, *(stride for extent, stride in axes if extent > 1)]
    if view.strides[3:] == ATOM_STRIDES and not any(place % WORD_BYTES for place in places):
        return []
    got = f"{view.pointer:#x} and {view.strides}"
    expected = (
        f"an address and strides that are multiples of {WORD_BYTES} bytes, and strides of "
        f"{ATOM_STRIDES} within each atom"
    )
    return [wrong(OutputScales.name, got, expected)]


def as_loaded(plan: GemmPlan, name: str, view: TensorView) -> TensorView:
    """Return an argument as TMA takes it: atoms of scales as lines of words."""
    scales = scales_of(plan, name)
    if scales is None or not scales.in_atoms:
        return view
    shape, strides = (*view.shape[:3], ATOM_WORDS), (*view.strides[:3], WORD_BYTES)
    return view._replace(shape=shape, strides=strides, dtype="uint32")


def addresses(
    scales: Mapping[str, TensorView], axes: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """Return address and strides, in elements, of scales for kernels that load them themselves."""
    values = {}
    for name, view in scales.items():
        values[name] = view.pointer
        for axis, extent, stride in zip(axes[name], view.shape, view.strides, strict=True):
            step = stride // SCALE_BYTES[view.dtype]
            values[f"{name}_{axis}_stride"] = step if extent > 1 else 0
    return values
