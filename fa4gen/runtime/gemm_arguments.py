"""The arguments of a matrix product, checked before anything is launched: only views, no arrays.

Nothing here touches a GPU or an array library, so every check runs (and is tested) anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fa4gen.designs.common.gemm_parameters import TENSOR_SCALE
from fa4gen.runtime.gated_arguments import AXES as GATED_AXES
from fa4gen.runtime.gated_arguments import check_columns, with_halves, wrong_shape
from fa4gen.runtime.gemm_axes import AXES, GEMM_DTYPES, OUTPUTS, dtype_of, named_axes
from fa4gen.runtime.gemm_factors import as_factor, is_zero
from fa4gen.runtime.gemm_memory import check_memory, check_overlap
from fa4gen.runtime.gemm_schedule import GemmSchedule, GemmSize
from fa4gen.runtime.group_arguments import (
    ROW_ARGUMENTS,
    check_group_extents,
    check_rows,
    count_groups,
    group_axes,
    with_groups,
)
from fa4gen.runtime.refusal import (
    refusal,
    refuse,
    unwanted,
    wrong,
    wrong_device,
)
from fa4gen.runtime.row_index import (
    ROW_INDEX,
    check_row_index,
    check_row_places,
    gathered_values,
    index_rows,
)
from fa4gen.runtime.scale_arguments import (
    AMAX,
    addresses,
    as_loaded,
    check_amax,
    check_atoms,
    check_output_scales,
    check_presence,
    check_tensor_scale,
    remedy_for_axes,
)
from fa4gen.runtime.scattered_rows import (
    SCATTERED,
    check_scattered,
    check_scattered_places,
    scattered_values,
)
from fa4gen.runtime.schedule import INT32_MAX
from fa4gen.runtime.strides import wrong_dtype

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

LARGEST_EXTENT = INT32_MAX - 1024
"""The kernel rounds extents up to whole tiles and blocks."""


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
    row_index: TensorView | None = None
    out_scales: TensorView | None = None
    out_index: TensorView | None = None
    row_weights: TensorView | None = None
    out_amax: TensorView | None = None
    out_tensor_scale: TensorView | None = None

    @property
    def device(self) -> int:
        """The GPU of A, which must be that of all."""
        return self.a.device


@dataclass(frozen=True)
class CheckedGemm:
    """Arguments that the kernel can work on, all with a batch in front."""

    a: TensorView
    """(batch, m, k), or (batch, rows, k) with an index of rows."""
    b: TensorView
    """(batch, k, n); with a gated activation (batch, k, 2, n / 2)."""
    c: TensorView | None
    """The shape of ``out``, or without axes that it lacks; a row has a number for each column of
    B."""
    out: TensorView
    """(batch, m, n), or rows that an index names; with a gated activation (batch, m, n / 2).

    Half as wide where elements are fp4, two a byte."""
    alpha: float
    beta: float
    size: GemmSize
    """The extents, n those of the output; k is 0 where alpha is 0, since A and B are not read.
    Groups are a batch."""
    b_axes: tuple[str, ...]
    c_axes: tuple[str, ...]
    scales: Mapping[str, TensorView]
    """Scales of blocks, by the name of the argument."""
    scale_axes: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, TensorView]
    """The rows of groups, by the name of the argument."""
    row_index: TensorView | None = None
    """(batch, m)."""
    out_scales: TensorView | None = None
    """Scales of a quantised output, (batch, m, blocks of n), or in atoms."""
    out_scale_axes: tuple[str, ...] = ()
    """The axes that the kernel has strides for."""
    scattered: Mapping[str, TensorView] = field(default_factory=dict)
    """The index and weights of scattered rows of the output."""
    out_amax: TensorView | None = None
    out_tensor_scale: TensorView | None = None

    def tensor(self, name: str) -> TensorView:
        """Return the tensor of an argument; KeyError for an absent one."""
        views = {"a": self.a, "b": self.b, "out": self.out, **self.scales}
        if self.c is not None:
            views["c"] = self.c
        return views[name]

    def axes(self, name: str) -> tuple[str, ...]:
        """Return the names of the axes of ``tensor(name)``."""
        return {**AXES, "b": self.b_axes, "c": self.c_axes, **self.scale_axes}[name]


def out_shape(
    plan: GemmPlan,
    a: TensorView,
    b: TensorView,
    row_index: TensorView | None = None,
    row_offsets: TensorView | None = None,
) -> tuple[int, ...] | None:
    """Return the shape of the output for two views, an index and offsets, None without one."""
    if len(a.shape) not in (2, 3) or len(b.shape) not in (2, 3) or a.device < 0:
        return None
    if plan.scatters_rows:  # it has any number of rows
        return None
    rows = a.shape[:-1] if row_index is None else index_rows(a, row_index)
    if plan.sums_by_group and row_offsets is not None and row_offsets.shape and rows is not None:
        rows = (max(0, row_offsets.shape[0] - 1), *rows)
    columns = plan.output_columns(b.shape[-1]) // plan.out_elements_per_byte
    return None if rows is None else (*rows, columns)


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
    problems += check_row_index(plan, arguments.row_index)
    if arguments.row_index is not None:
        views[ROW_INDEX] = arguments.row_index
    problems += check_output_scales(plan, arguments.out_scales, arguments.out)
    if arguments.out_scales is not None:
        views["out_scales"] = arguments.out_scales
    scattered = {name: getattr(arguments, name) for name in SCATTERED}
    problems += check_scattered(plan, scattered, arguments.out)
    views |= {name: view for name, view in scattered.items() if view is not None}
    rows = {name: getattr(arguments, name) for name in ROW_ARGUMENTS}
    refuse([*problems, *check_rows(plan, rows, arguments.device)])
    shapes: Iterable[Problem] = ()
    if plan.config.groups is not None:
        views, problems = _in_groups(plan, views, rows)
    else:
        refuse(_check_axes(plan, views))
        views, problems = _with_batch(plan, views)
        wrong = {problem.key for problem in problems}
        shapes = (problem for problem in _check_shapes(plan, views) if problem.key not in wrong)
    refuse([*problems, *_check_types(plan, views), *shapes])
    refuse(check_atoms(plan, views))
    views = {
        name: as_loaded(plan, name, view._replace(dtype=GEMM_DTYPES[dtype_of(plan, name)]))
        for name, view in views.items()
    }
    refuse(problem for name, view in views.items() for problem in check_memory(plan, name, view))
    index = views.get(ROW_INDEX)
    if index is not None:
        refuse(check_row_places(views))
    if plan.scatters_rows:
        refuse(check_scattered_places(views))
    count = views["b"].shape[0] if plan.config.groups else 1
    refuse(check_amax(plan, arguments.out_amax, count, arguments.device))
    refuse(check_tensor_scale(plan, arguments.out_tensor_scale, arguments.device))
    if "out" not in views:
        raise refusal("out", "nothing", "an array, or A and B on a CUDA device")
    of_tensor = arguments.out_tensor_scale
    refuse(check_overlap(plan, views if of_tensor is None else {**views, TENSOR_SCALE: of_tensor}))
    batch, m, k = views["a"].shape
    if index is not None:
        m = index.shape[1]
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
            0 if is_zero(alpha) else k * plan.elements_per_byte,
        ),
        b_axes=GATED_AXES if plan.gated else AXES["b"],
        c_axes=plan.c.batched_axes,
        scales={row.name: views[row.name] for row in plan.scales},
        scale_axes={row.name: row.loaded_axes for row in plan.scales},
        rows={name: view for name, view in rows.items() if view is not None},
        row_index=index,
        out_scales=views.get("out_scales"),
        out_amax=arguments.out_amax,
        out_tensor_scale=arguments.out_tensor_scale,
        scattered={name: views[name] for name in SCATTERED if name in views},
        out_scale_axes=() if plan.output_scales is None else plan.output_scales.axes[:3],
    )


def gemm_scalar_values(
    checked: CheckedGemm, schedule: GemmSchedule
) -> dict[str, bytes | int | float]:
    """Every kernel parameter except the tensor maps, by name."""
    scales, axes = dict(checked.scales), dict(checked.scale_axes)
    if checked.out_scales is not None:
        view = checked.out_scales  # of atoms, the kernel knows the inner axes
        scales["out_scales"] = view._replace(shape=view.shape[:3], strides=view.strides[:3])
        axes["out_scales"] = checked.out_scale_axes
    index, of_tensor = checked.row_index, checked.out_tensor_scale
    return {
        **addresses(scales, axes),
        **({} if index is None else gathered_values(checked.a, index)),
        **(scattered_values(checked.out, checked.scattered) if checked.scattered else {}),
        **({} if checked.out_amax is None else {AMAX: checked.out_amax.pointer}),
        **({} if of_tensor is None else {TENSOR_SCALE: of_tensor.pointer}),
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


def _check_axes(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    problems = []
    for name, view in views.items():
        axes = named_axes(plan, name)
        if len(view.shape) not in (len(axes) - 1, len(axes)):
            without, with_batch = ", ".join(axes[1:]), ", ".join(axes)
            if len(axes) == 2:
                without += ","
            problems.append(
                wrong(
                    name,
                    f"{len(view.shape)} axes {view.shape}",
                    f"axes ({without}), or ({with_batch})",
                    remedy_for_axes(plan, name),
                )
            )
    return problems


def _with_batch(
    plan: GemmPlan, views: dict[str, TensorView]
) -> tuple[dict[str, TensorView], list[Problem]]:
    """Give every view a batch: one without is shared by all, but not the output."""
    full = {name: len(named_axes(plan, name)) for name in views}
    has_batch = {name: len(view.shape) == full[name] for name, view in views.items()}
    batch = views["a"].shape[0] if has_batch["a"] else 1
    problems = [
        wrong(name, f"{views[name].shape}", "a batch exactly where A has one")
        for name in OUTPUTS
        if name in views and has_batch[name] != has_batch["a"]
    ]
    if not has_batch["a"]:
        problems += [
            wrong(name, f"a batch, {views[name].shape}", "no batch, since A has none")
            for name in ("b", "c", "scale_a", "scale_b", ROW_INDEX)
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
    full = {name: named_axes(plan, name) for name in views}
    axes = {name: group_axes(plan, named) for name, named in full.items()}
    refuse(check_group_extents(plan, views, axes, rows))
    groups = count_groups(plan, views, rows)
    complete = {
        name: with_groups(name, view, axes[name], full[name], groups)
        for name, view in views.items()
    }
    return complete, _too_large(plan, complete)


def _check_types(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    problems: list[Problem] = []
    device = views["a"].device
    for name, view in views.items():
        dtype = dtype_of(plan, name)
        of_b = "dtype" if plan.b_dtype == plan.dtype else "b_dtype"
        word = {"a": "dtype", "b": of_b}.get(name, "out_dtype")
        if name.startswith("scale"):
            word = "dtype of scales"
        if name in OUTPUTS and plan.output_scales is not None:
            word = "output_scales" if name == "out" else "output_scale_dtype"
        if name != ROW_INDEX and name not in SCATTERED:
            problems += wrong_dtype(name, view, dtype, GEMM_DTYPES, word)
        problems += wrong_device(name, view.device, device, "A's")
    return problems


def _too_large(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    """Return the problems of extents that the kernel cannot number."""
    (batch, rows, k), n = views["a"].shape, views["b"].shape[2]
    return [
        wrong(name, f"{extent}", f"an extent {axis} of at most {LARGEST_EXTENT}")
        for name, axis, extent in (
            ("a", named_axes(plan, "a")[1], rows),
            ("a", "k", k * plan.elements_per_byte),
            ("b", "n", n),
            ("a", "batch", batch),
            (ROW_INDEX, "m", views[ROW_INDEX].shape[1] if plan.gathers_rows else 0),
        )
        if extent > LARGEST_EXTENT
    ]


def _check_shapes(plan: GemmPlan, views: dict[str, TensorView]) -> list[Problem]:
    (batch, rows, k), n = views["a"].shape, views["b"].shape[2]
    m = views[ROW_INDEX].shape[1] if plan.gathers_rows else rows
    extents = {"batch": batch, "m": m, "n": n, "k": k}
    problems = [*_too_large(plan, views), *check_columns(plan, n)]
    for row in plan.scales:
        extents |= row.extents(rows, n, k * plan.elements_per_byte)
    if plan.output_scales is not None:
        extents |= plan.output_scales.extents(m, plan.output_columns(n))
    for name, view in views.items():
        if name == "a":
            continue
        problems += wrong_shape(plan, name, view, named_axes(plan, name), extents)
    return problems
