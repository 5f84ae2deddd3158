"""The arguments of a matrix product, checked before anything is launched: only views, no arrays.

Nothing here touches a GPU or an array library, so every check runs (and is tested) anywhere.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fa4gen.runtime.arguments import DTYPE_NAMES
from fa4gen.runtime.gated_arguments import AXES as GATED_AXES
from fa4gen.runtime.gated_arguments import check_columns, with_halves, wrong_shape
from fa4gen.runtime.gemm_schedule import GemmSchedule, GemmSize
from fa4gen.runtime.group_arguments import (
    ROW_ARGUMENTS,
    check_group_extents,
    check_rows,
    group_axes,
    with_groups,
    wrong_clipped_strides,
)
from fa4gen.runtime.memory_overlap import may_overlap
from fa4gen.runtime.refusal import (
    refusal,
    refuse,
    unwanted,
    wrong,
    wrong_address,
    wrong_device,
)
from fa4gen.runtime.scale_arguments import (
    ARRANGED,
    SCALE_BYTES,
    addresses,
    as_loaded,
    check_any_strides,
    check_atoms,
    check_presence,
    scales_of,
)
from fa4gen.runtime.schedule import INT32_MAX
from fa4gen.runtime.strides import ALIGNMENT, meets_itself, wrong_dtype, wrong_stride

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

GEMM_DTYPES = {
    **DTYPE_NAMES,
    "fp8_e5m2": "float8_e5m2",
    "fp4_e2m1": "float4_e2m1fn_x2",
    "fp32": "float32",
    "ue8m0": "float8_e8m0fnu",
    "ue4m3": "float8_e4m3fn",
    "uint32": "uint32",
}
LARGEST_EXTENT = INT32_MAX - 1024
"""The kernel rounds extents up to whole tiles and blocks."""
MAX_FLOAT32 = 3.4028234663852886e38


class GemmArguments(NamedTuple):
    """The arguments of one call. ``out`` is None where no output could be made for A and B."""

    a: TensorView
    b: TensorView
    c: TensorView | None
    out: TensorView | None
    alpha: float
    beta: float
    scale_a: TensorView | None = None
    scale_b: TensorView | None = None
    row_offsets: TensorView | None = None
    row_counts: TensorView | None = None

    @property
    def device(self) -> int:
        """The GPU of A, which must be that of all."""
        return self.a.device


@dataclass(frozen=True)
class CheckedGemm:
    """Arguments that the kernel can work on, all with a batch in front."""

    a: TensorView
    """(batch, m, k)."""
    b: TensorView
    """(batch, k, n); with a gated activation (batch, k, 2, n / 2)."""
    c: TensorView | None
    """The shape of ``out``, or without axes that it lacks; a row has a number for each column of
    B."""
    out: TensorView
    """(batch, m, n); with a gated activation (batch, m, n / 2)."""
    alpha: float
    beta: float
    size: GemmSize
    """Of the output; with a k of 0 where alpha is 0: A and B are not read. Groups are a batch."""
    b_axes: tuple[str, ...]
    c_axes: tuple[str, ...]
    scales: Mapping[str, TensorView]
    """Scales of blocks, by the name of the argument."""
    scale_axes: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, TensorView]
    """The rows of groups, by the name of the argument."""

    def tensor(self, name: str) -> TensorView:
        """Return the tensor of an argument; KeyError for an absent one."""
        views = {"a": self.a, "b": self.b, "out": self.out, **self.scales}
        if self.c is not None:
            views["c"] = self.c
        return views[name]

    def axes(self, name: str) -> tuple[str, ...]:
        """Return the names of the axes of ``tensor(name)``."""
        return {**AXES, "b": self.b_axes, "c": self.c_axes, **self.scale_axes}[name]


AXES = {"a": ("batch", "m", "k"), "b": ("batch", "k", "n"), "out": ("batch", "m", "n")}


def as_factor(name: str, value: object) -> float:
    """Return alpha or beta as a float; ArgumentError for a number outside of float32's range."""
    expected = "a finite number that float32 holds"
    if not isinstance(value, (bool, str)):
        try:
            factor = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise refusal(name, repr(value), expected) from None
        if math.isfinite(factor) and abs(factor) <= MAX_FLOAT32:
            return factor
    raise refusal(name, repr(value), expected)


def _counts(factor: float) -> bool:
    """Return whether a factor is another number than 0, as float32."""
    return ctypes.c_float(factor).value != 0


def out_shape(plan: GemmPlan, a: TensorView, b: TensorView) -> tuple[int, ...] | None:
    """Return the shape of the output for two views, None where they have none."""
    if len(a.shape) not in (2, 3) or len(b.shape) not in (2, 3) or a.device < 0:
        return None
    return (*a.shape[:-1], plan.output_columns(b.shape[-1]))


def check_gemm_arguments(plan: GemmPlan, arguments: GemmArguments) -> CheckedGemm:
    """Check everything that does not depend on the GPU.

    Raises ArgumentError with all problems: each message names the argument, the expected and the
    given value.
    """
    views = {
        name: view
        for name, view in (("a", arguments.a), ("b", arguments.b), ("out", arguments.out))
        if view is not None
    }
    problems = list(_check_c(plan, arguments.c))
    if arguments.c is not None:
        views["c"] = arguments.c
    for name, view in (("scale_a", arguments.scale_a), ("scale_b", arguments.scale_b)):
        problems += check_presence(plan, name, view)
        if view is not None:
            views[name] = view
    rows = {name: getattr(arguments, name) for name in ROW_ARGUMENTS}
    refuse([*problems, *check_rows(plan, rows, arguments.device)])
    shapes: Iterable[Problem] = ()
    if plan.groups:
        views, problems = _in_groups(plan, views, rows)
    else:
        refuse(_check_axes(plan, views))
        views, problems = _with_batch(plan, views)
        wrong = {problem.key for problem in problems}
        shapes = (problem for problem in _check_shapes(plan, views) if problem.key not in wrong)
    refuse([*problems, *_check_types(plan, views), *shapes])
    refuse(check_atoms(plan, views))
    views = {
        name: as_loaded(plan, name, view._replace(dtype=GEMM_DTYPES[_dtype(plan, name)]))
        for name, view in views.items()
    }
    refuse(problem for name, view in views.items() for problem in _check_memory(plan, name, view))
    if "out" not in views:
        raise refusal("out", "nothing", "an array, or A and B on a CUDA device")
    refuse(_check_overlap(plan, views))
    batch, m, k = views["a"].shape
    alpha = as_factor("alpha", arguments.alpha)
    return CheckedGemm(
        a=views["a"],
        b=with_halves(plan, views["b"]) if plan.gated else views["b"],
        c=views.get("c"),
        out=views["out"],
        alpha=alpha,
        beta=as_factor("beta", arguments.beta),
        size=GemmSize(
            batch,
            m,
            plan.output_columns(views["b"].shape[2]),
            k * plan.elements_per_byte if _counts(alpha) else 0,
        ),
        b_axes=GATED_AXES if plan.gated else AXES["b"],
        c_axes=plan.c.batched_axes,
        scales={row.name: views[row.name] for row in plan.scales},
        scale_axes={row.name: row.loaded_axes for row in plan.scales},
        rows={name: view for name, view in rows.items() if view is not None},
    )


def gemm_scalar_values(
    checked: CheckedGemm, schedule: GemmSchedule
) -> dict[str, bytes | int | float]:
    """Every kernel parameter except the tensor maps, by name."""
    return {
        **addresses(checked.scales, checked.scale_axes),
        "alpha": checked.alpha,
        "beta": checked.beta,
        "m": checked.size.m,
        "n": checked.size.n,
        "k": checked.size.k,
        "row_tiles": schedule.row_tiles,
        "column_tiles": schedule.column_tiles,
        "num_tiles": schedule.num_tiles,
        "group_rows": schedule.group_rows,
        "groups": checked.size.batch,
        **{name: view.pointer for name, view in checked.rows.items()},
    }


def _check_c(plan: GemmPlan, c: TensorView | None) -> list[Problem]:
    if not plan.c.exists and c is not None:
        return [unwanted("c", "this kernel was generated with residual: none")]
    if plan.c.exists and c is None:
        return [wrong("c", "nothing", f"{plan.c.expected} (residual: {plan.residual})")]
    return []


def _named_axes(plan: GemmPlan, name: str) -> tuple[str, ...]:
    scales = scales_of(plan, name)
    if scales is not None:
        return scales.axes
    return plan.c.batched_axes if name == "c" else AXES[name]


def _check_axes(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    problems = []
    for name, view in views.items():
        axes = _named_axes(plan, name)
        if len(view.shape) not in (len(axes) - 1, len(axes)):
            without, with_batch = ", ".join(axes[1:]), ", ".join(axes)
            if len(axes) == 2:
                without += ","
            problems.append(
                wrong(
                    name,
                    f"{len(view.shape)} axes {view.shape}",
                    f"axes ({without}), or ({with_batch})",
                    ARRANGED if axes[-1] == "byte" else "",
                )
            )
    return problems


def _with_batch(
    plan: GemmPlan, views: dict[str, TensorView]
) -> tuple[dict[str, TensorView], list[Problem]]:
    """Give every view a batch: one without is shared by all, but not the output."""
    full = {name: len(_named_axes(plan, name)) for name in views}
    has_batch = {name: len(view.shape) == full[name] for name, view in views.items()}
    batch = views["a"].shape[0] if has_batch["a"] else 1
    problems = []
    if "out" in views and has_batch["out"] != has_batch["a"]:
        problems.append(wrong("out", f"{views['out'].shape}", "a batch exactly where A has one"))
    if not has_batch["a"]:
        problems += [
            wrong(name, f"a batch, {views[name].shape}", "no batch, since A has none")
            for name in ("b", "c", "scale_a", "scale_b")
            if has_batch.get(name)
        ]
    complete = {
        name: view
        if has_batch[name]
        else view._replace(shape=(batch, *view.shape), strides=(0, *view.strides))
        for name, view in views.items()
    }
    return complete, problems


def _in_groups(
    plan: GemmPlan, views: dict[str, TensorView], rows: Mapping[str, TensorView | None]
) -> tuple[dict[str, TensorView], list[Problem]]:
    """Check axes and extents of a call with groups, and give every view its batch: the groups."""
    full = {name: _named_axes(plan, name) for name in views}
    axes = {name: group_axes(plan, named) for name, named in full.items()}
    refuse(check_group_extents(plan, views, axes, rows))
    groups = views["b"].shape[0]
    complete = {
        name: with_groups(name, view, axes[name], full[name], groups)
        for name, view in views.items()
    }
    return complete, _too_large(complete)


def _dtype(plan: GemmPlan, name: str) -> str:
    scales = scales_of(plan, name)
    if scales is not None:
        return scales.dtype
    return {"a": plan.dtype, "b": plan.b_dtype}.get(name, plan.out_dtype)


def _element_bytes(plan: GemmPlan, name: str) -> int:
    scales = scales_of(plan, name)
    if scales is not None:
        return SCALE_BYTES["uint32" if scales.in_atoms else GEMM_DTYPES[scales.dtype]]
    return plan.element_bytes if name in ("a", "b") else plan.out_element_bytes


def _check_types(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    problems: list[Problem] = []
    device = views["a"].device
    for name, view in views.items():
        dtype = _dtype(plan, name)
        of_b = "dtype" if plan.b_dtype == plan.dtype else "b_dtype"
        word = {"a": "dtype", "b": of_b}.get(name, "out_dtype")
        if name.startswith("scale"):
            word = "dtype of scales"
        problems += wrong_dtype(name, view, dtype, GEMM_DTYPES, word)
        problems += wrong_device(name, view.device, device, "A's")
    return problems


def _too_large(views: dict[str, TensorView]) -> list[Problem]:
    """Return the problems of extents that the kernel cannot number."""
    (batch, m, k), n = views["a"].shape, views["b"].shape[2]
    return [
        wrong(name, f"{extent}", f"an extent {axis} of at most {LARGEST_EXTENT}")
        for name, axis, extent in (
            ("a", "m", m),
            ("a", "k", k),
            ("b", "n", n),
            ("a", "batch", batch),
        )
        if extent > LARGEST_EXTENT
    ]


def _check_shapes(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    (batch, m, k), n = views["a"].shape, views["b"].shape[2]
    extents = {"batch": batch, "m": m, "n": n, "k": k}
    problems = [*_too_large(views), *check_columns(plan, n)]
    for row in plan.scales:
        extents |= row.extents(m, n, k * plan.elements_per_byte)
    for name, view in views.items():
        if name == "a":
            continue
        problems += wrong_shape(plan, name, view, _named_axes(plan, name), extents)
    return problems


def _check_memory(plan: GemmPlan, name: str, view: TensorView) -> list[Problem]:
    """Addresses and strides; a tensor without elements is never touched, and may have any."""
    if 0 in view.shape:
        return []
    axes = _named_axes(plan, name)
    contiguous = {"a": plan.a_major, "b": plan.b_major}.get(name, axes[-1])
    scales = scales_of(plan, name)
    if scales is not None and not scales.in_atoms:
        return check_any_strides(name, view, _element_bytes(plan, name))
    if scales is not None:
        axes, contiguous = scales.loaded_axes, scales.loaded_axes[-1]
    remedy = f"pass a copy of {name} in which {contiguous} is contiguous and the rest padded"
    if scales is not None:
        remedy = ARRANGED
    problems = list(wrong_address(name, view.pointer, ALIGNMENT, remedy))
    element_bytes = _element_bytes(plan, name)
    for axis, extent, stride in zip(axes, view.shape, view.strides, strict=True):
        if axis == contiguous:
            if stride != element_bytes and extent > 1:
                key = {"a": "a_major", "b": "b_major"}.get(name)
                said = f" (the config says {key}: {contiguous})" if key else ""
                expected = f"a stride along {axis} of {element_bytes} bytes{said}"
                problems.append(wrong(name, f"{stride} bytes", expected, remedy))
        elif extent > 1:
            problems += wrong_stride(name, axis, stride, remedy)
    if plan.groups and name in ("out", "c") and axes == AXES["out"]:
        problems += wrong_clipped_strides(name, view, axes, remedy)
    if name == "out" and not problems:
        problems += meets_itself(name, view, remedy)
    return problems


def _check_overlap(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    """Refuse an output that shares memory with an input; only C itself may be overwritten.

    Each panel of C is read before the same panel of the output is written, and no other is.
    """
    out = views["out"]
    problems = []
    for name in ("a", "b", "c", "scale_a", "scale_b"):
        view = views.get(name)
        if view is None or (name == "c" and _same_memory(view, out)):
            continue
        if may_overlap(out, plan.out_element_bytes, view, _element_bytes(plan, name)):
            but = ", or C's own memory" if name == "c" and plan.c.is_matrix else ""
            problems.append(
                wrong("out", f"memory that overlaps {name}'s", f"memory of its own{but}")
            )
    return problems


def _same_memory(c: TensorView, out: TensorView) -> bool:
    """Whether each element has the other's address; strides of extents of 1 do not matter."""
    return (c.pointer, c.shape) == (out.pointer, out.shape) and all(
        stride == other
        for extent, stride, other in zip(c.shape, c.strides, out.strides, strict=True)
        if extent > 1
    )
