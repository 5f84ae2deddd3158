"""Tensor maps (TMA descriptors) of the operands: computed here, encoded by the driver."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from fa4gen.designs.common.tensor_maps import END_ROW, END_ROW_LOG2, KEYS_FIRST_DIMS
from fa4gen.errors import ArgumentError, Problem
from fa4gen.runtime.device import load_driver

if TYPE_CHECKING:
    from fa4gen.designs.common.model import TensorMapPlan
    from fa4gen.runtime.tensor_view import TensorView

TENSOR_MAP_BYTES = 128
SECTOR_BYTES = 32
"""The unit in which L2 is read."""


@dataclass(frozen=True)
class TensorMapSpec:
    """The arguments of cuTensorMapEncodeTiled, dimensions from the contiguous one outwards."""

    tensor: str
    pointer: int
    dtype: str
    """NumPy's word for it, as in TensorView."""
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes, of every dimension but the first."""
    box: tuple[int, ...]
    swizzle: int
    l2_promotion: int = 256
    """Bytes that a miss in L2 fetches at once."""


def describe(plan: TensorMapPlan, view: TensorView, *, fallback_pointer: int = 0) -> TensorMapSpec:
    """Describe the map of ``view``, which has the axes (batch, rows, heads, depth) in this order.

    A tensor without elements gets a map of one row over ``fallback_pointer``, any valid device
    address that is a multiple of 16: the kernel never reads it, but no map may have an extent of 0.
    """
    if plan.dims == KEYS_FIRST_DIMS:
        axes = ("batch", "row", "head", "column")
        return describe_axes(plan, view, axes, fallback_pointer=fallback_pointer)
    if "wrap" in plan.dims:
        of_panels = "panel" in plan.dims
        clipped = _describe_clipped_panels if of_panels else _describe_clipped
        return clipped(plan, view, fallback_pointer)
    panel_columns = plan.box[0]
    element_bytes = plan.box_bytes // math.prod(plan.box)
    panel_bytes = panel_columns * element_bytes
    batch, rows, heads, depth = view.shape
    extents = {
        "column": (panel_columns, element_bytes),
        "row": (rows, view.strides[1]),
        "panel": (depth // panel_columns, panel_bytes),
        "head": (heads, view.strides[2]),
        "batch": (batch, view.strides[0]),
    }
    pointer = view.pointer
    if not (batch and rows and heads):
        pointer = fallback_pointer
        for name in ("row", "head", "batch"):
            extents[name] = (1, panel_bytes)
    # The stride of a dimension of one element is not used, but must be legal.
    dims = tuple(extents[name][0] for name in plan.dims)
    strides = tuple(
        extents[name][1] if extents[name][0] > 1 else panel_bytes for name in plan.dims[1:]
    )
    return _spec(plan, pointer, view, dims, strides)


def _spec(
    plan: TensorMapPlan,
    pointer: int,
    view: TensorView,
    dims: tuple[int, ...],
    strides: tuple[int, ...],
) -> TensorMapSpec:
    return TensorMapSpec(
        plan.tensor, pointer, view.dtype, dims, strides, plan.box, plan.swizzle, plan.l2_promotion
    )


def row_step(view: TensorView) -> int:
    """Return the bytes from one row to the next; from batch to batch where each has one row."""
    return view.strides[0] if view.shape[1] == 1 and view.shape[0] > 1 else view.strides[1]


def rows_between(view: TensorView) -> int:
    """Return the rows from one batch, or page, to the next, of ``view`` (batch, rows, ...)."""
    step = row_step(view)
    return view.strides[0] // step if view.shape[0] > 1 and step and 0 not in view.shape else 0


def place_steps(view: TensorView) -> tuple[int, int]:
    """Return the steps of a clipped map of panels from row to row, and from head to head.

    A step is the greatest common divisor of both strides: see ``designs.common.tensor_maps``.
    Without elements there are no steps: the strides may be anything.
    """
    if 0 in view.shape:
        return 0, 0
    row, head = _clipped_strides(view)
    step = math.gcd(row, head)
    return (row // step, head // step) if step else (0, 0)


def most_places(view: TensorView) -> int:
    """Return how many places a clipped map of panels of ``view`` has."""
    row, head = place_steps(view)
    rows = (view.shape[0] - 1) * rows_between(view) + view.shape[1] + 1
    return rows * row + view.shape[2] * head


def _clipped_strides(view: TensorView) -> tuple[int, int]:
    """Return the bytes from row to row, legal for a single row, and from head to head or 0."""
    batch, rows, heads, depth = view.shape
    row = row_step(view) if batch * rows > 1 else depth * view.strides[3]
    return row, view.strides[2] if heads > 1 else 0


def _describe_clipped(
    plan: TensorMapPlan, view: TensorView, fallback_pointer: int
) -> TensorMapSpec:
    """Describe a map that ends at any row: see ``designs.common.tensor_maps``."""
    element_bytes = plan.box_bytes // math.prod(plan.box)
    panel_bytes = plan.box[0] * element_bytes
    batch, rows, heads, depth = view.shape
    pointer, row_stride = view.pointer, row_step(view)
    if not (batch and rows and heads):
        pointer, row_stride, batch, rows, heads = fallback_pointer, panel_bytes, 1, 1, 1
    elif rows == 1 and batch == 1:
        row_stride = panel_bytes
    steps = (batch - 1) * rows_between(view) if batch > 1 else 0
    extents = {
        "column": (depth, element_bytes),
        "row": (END_ROW, row_stride),
        "head": (heads, view.strides[2] if heads > 1 else panel_bytes),
        "place": (steps + rows + 1, row_stride),
        "wrap": (END_ROW + 1, (1 << (64 - END_ROW_LOG2)) - row_stride),
    }
    dims = tuple(extents[name][0] for name in plan.dims)
    strides = tuple(extents[name][1] for name in plan.dims[1:])
    return _spec(plan, pointer, view, dims, strides)


def _describe_clipped_panels(
    plan: TensorMapPlan, view: TensorView, fallback_pointer: int
) -> TensorMapSpec:
    """Describe a map that ends at any row; the kernel selects the head within its box."""
    panel_columns = plan.box[0]
    panel_bytes = panel_columns * plan.box_bytes // math.prod(plan.box)
    panels = view.shape[3] // panel_columns
    if 0 in view.shape:
        pointer, row, step, places = fallback_pointer, panel_bytes, panel_bytes, 1
    else:
        pointer, (row, head), places = view.pointer, _clipped_strides(view), most_places(view)
        step = math.gcd(row, head)
    # "column", "row", "panel", "place", "wrap"
    dims = (panel_columns, END_ROW, panels, max(1, places), END_ROW + 1)
    strides = (row, panel_bytes, step or panel_bytes, (1 << (64 - END_ROW_LOG2)) - row)
    return TensorMapSpec(plan.tensor, pointer, view.dtype, dims, strides, plan.box, plan.swizzle)


def describe_axes(
    plan: TensorMapPlan, view: TensorView, axes: tuple[str, ...], *, fallback_pointer: int
) -> TensorMapSpec:
    """Describe the map of ``view``, with these names of axes, in the order of ``plan``.

    A tensor without elements gets a map of single elements over ``fallback_pointer``, any valid
    device address that is a multiple of 16: the kernel reads nothing of it, but no map may have an
    extent of 0. The stride of a dimension of one element is not used, but must be legal.
    """
    legal = plan.box_bytes // math.prod(plan.box) * plan.box[0]
    where = {name: (view.shape[i], view.strides[i]) for i, name in enumerate(axes)}
    if "wrap" in plan.dims:
        lines = plan.dims[1]
        where |= _clipped_lines(lines, *where[lines], legal)
    extents = [where[name] for name in plan.dims]
    pointer = view.pointer
    if 0 in view.shape:
        pointer = fallback_pointer
        extents = [(1, legal)] * len(extents)
    dims = tuple(extent for extent, _ in extents)
    strides = tuple(stride if extent > 1 else legal for extent, stride in extents[1:])
    # Measured: where every other row begins within a sector, 256 bytes cost a product 12 to 14 %.
    promotion = 128 if strides[0] % SECTOR_BYTES else 256
    return TensorMapSpec(
        plan.tensor, pointer, view.dtype, dims, strides, plan.box, plan.swizzle, promotion
    )


def _clipped_lines(axis: str, lines: int, stride: int, legal: int) -> dict[str, tuple[int, int]]:
    """Return the dimensions of a map that ends at any line: see ``designs.common.tensor_maps``."""
    stride = stride if lines > 1 else legal
    wrap = (1 << (64 - END_ROW_LOG2)) - stride
    return {axis: (END_ROW, stride), "place": (lines + 1, stride), "wrap": (END_ROW + 1, wrap)}


@lru_cache(maxsize=1024)
def encode(spec: TensorMapSpec) -> bytes:
    """Encode a map as its 128 bytes. Needs the NVIDIA driver, but no GPU.

    Raises ArgumentError naming the tensor when the driver refuses the map.
    """
    driver = load_driver()
    swizzles, promotions = driver.CUtensorMapSwizzle, driver.CUtensorMapL2promotion
    error, tensor_map = driver.cuTensorMapEncodeTiled(
        {
            "bfloat16": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            "float16": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            "float32": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            # TMA moves bytes: it has no type for fp8 and needs none.
            "float8_e4m3fn": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8,
            "float8_e5m2": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8,
            "float8_e8m0fnu": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8,
            "float4_e2m1fn_x2": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT8,
            "uint32": driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        }[spec.dtype],
        len(spec.dims),
        spec.pointer,
        [driver.cuuint64_t(extent) for extent in spec.dims],
        [driver.cuuint64_t(stride) for stride in spec.strides],
        [driver.cuuint32_t(extent) for extent in spec.box],
        [driver.cuuint32_t(1)] * len(spec.dims),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        {
            0: swizzles.CU_TENSOR_MAP_SWIZZLE_NONE,
            32: swizzles.CU_TENSOR_MAP_SWIZZLE_32B,
            64: swizzles.CU_TENSOR_MAP_SWIZZLE_64B,
            128: swizzles.CU_TENSOR_MAP_SWIZZLE_128B,
        }[spec.swizzle],
        {
            64: promotions.CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
            128: promotions.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            256: promotions.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        }[spec.l2_promotion],
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if error != driver.CUresult.CUDA_SUCCESS:
        raise ArgumentError(
            Problem(
                f"{spec.tensor}: the driver refuses a tensor map ({error.name}) with extents "
                f"{spec.dims} and strides of {spec.strides} bytes",
                remedy="pass a contiguous copy",
                key=spec.tensor,
            )
        )
    return ctypes.string_at(int(tensor_map.getPtr()), TENSOR_MAP_BYTES)
