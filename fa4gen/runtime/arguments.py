"""The arguments of a kernel call, checked before anything is launched: no arrays, only their views.

Nothing here touches a GPU or an array library, so every check runs (and is tested) anywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fa4gen.designs.common.tensor_maps import CLIPPED_PANEL_DIMS, END_ROW
from fa4gen.runtime.axes import (
    AXES,
    axes_of,
    is_packed,
    swap_rows_and_heads,
    with_batch,
    wrong_axes,
)
from fa4gen.runtime.declared_arguments import check_declared
from fa4gen.runtime.float32_arguments import FLOAT32_BYTES, check_descales, check_lse, check_sinks
from fa4gen.runtime.memory_overlap import overlaps
from fa4gen.runtime.problem_limits import check_counts, largest_query_count, largest_row_count
from fa4gen.runtime.refusal import refusal, refuse, wrong, wrong_address, wrong_device
from fa4gen.runtime.schedule import INT32_MAX, ProblemSize
from fa4gen.runtime.strides import (
    ALIGNMENT,
    CLIPPED_STRIDE,
    MAX_STRIDE,
    meets_itself,
    wrong_dtype,
    wrong_stride,
)
from fa4gen.runtime.table_arguments import check_tables, sequences_of
from fa4gen.runtime.tensor_map import most_places, row_step
from fa4gen.runtime.tensor_view import TensorView
from fa4gen.runtime.values_in_keys import check_values_in_keys
from fa4gen.runtime.workspace import ELEMENT_BYTES, check_workspace

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.errors import Problem

DTYPE_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp8_e4m3": "float8_e4m3fn"}
SCORE_SCALE = 2.0**24
TENSORS = ("query", "key", "value", "out")
DESCALES = ("query_descale", "key_descale", "value_descale")
TABLES = ("query_offsets", "key_offsets", "key_lengths", "page_table")
OPTIONAL = (*DESCALES, "sinks", *TABLES, "workspace")
"""Arguments that only some kernels take."""


class Arguments(NamedTuple):
    """The arguments of one call, axes in the caller's order.

    ``out`` is None where the query is too wrong to make an output for; ``lse`` also for kernels
    without one.
    """

    query: TensorView
    key: TensorView
    value: TensorView
    out: TensorView | None
    lse: TensorView | None
    softmax_scale: float
    layout: str
    query_descale: TensorView | None = None
    """float32 (batch or sequences, key heads), as the other two; None is 1."""
    key_descale: TensorView | None = None
    value_descale: TensorView | None = None
    sinks: TensorView | None = None
    """float32 (query heads); given for kernels with sinks, and only for them."""
    query_offsets: TensorView | None = None
    """int32 (sequences + 1), of ragged batches."""
    key_offsets: TensorView | None = None
    """int32 (sequences + 1), of ragged keys."""
    key_lengths: TensorView | None = None
    """int32 (sequences)."""
    page_table: TensorView | None = None
    """int32 (sequences, most pages of a sequence)."""
    workspace: TensorView | None = None
    """The workspace of kernels that split keys; None for the launcher's own."""
    tensors: tuple[tuple[str, TensorView | None], ...] = ()
    """The tensors that mask and score function read, by their names in the config."""

    @property
    def device(self) -> int:
        """The query's GPU, which must be that of all."""
        return self.query.device

    @property
    def descales(self) -> dict[str, TensorView | None]:
        """The scales of fp8 by the name of the argument."""
        scales = (self.query_descale, self.key_descale, self.value_descale)
        return dict(zip(DESCALES, scales, strict=True))

    @property
    def float32_inputs(self) -> dict[str, TensorView]:
        """The further float32 inputs of the call, by the name of the argument."""
        named = {**self.descales, "sinks": self.sinks, **dict(self.tensors)}
        return {name: view for name, view in named.items() if view is not None}

    @property
    def tables(self) -> dict[str, TensorView | None]:
        """The tables of sequences, by the name of the argument."""
        return {name: getattr(self, name) for name in TABLES}


@dataclass(frozen=True)
class CheckedArguments:
    """Arguments that the kernel can work on, axes in the order (batch, rows, heads, depth)."""

    query: TensorView
    key: TensorView
    value: TensorView
    out: TensorView
    lse: TensorView | None
    softmax_scale: float
    size: ProblemSize
    descales: dict[str, TensorView | None]
    """The scales by the name of the argument; None is 1, also for a kernel without them."""
    tables: dict[str, TensorView]
    """The tables of sequences that the kernel reads, by the name of the argument."""
    sinks: TensorView | None = None
    """None for a kernel without them."""
    given: dict[str, TensorView] = field(default_factory=dict)
    """The tensors that mask and score function read, by their names in the config."""

    def tensor(self, name: str) -> TensorView:
        """Return the tensor called "query", "key", "value" or "out"."""
        return {"query": self.query, "key": self.key, "value": self.value, "out": self.out}[name]


def check_layout(layout: str) -> None:
    """Refuse any layout but "bshd" and "bhsd"."""
    if layout not in AXES:
        raise refusal("layout", f'"{layout}"', " or ".join(f'"{name}"' for name in AXES))


def as_scale(softmax_scale: object) -> float:
    """Return the softmax scale as a float; ArgumentError for anything but a number."""
    if not isinstance(softmax_scale, (bool, str)):
        try:
            return float(softmax_scale)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            pass
    raise refusal("softmax_scale", repr(softmax_scale), "a finite number above 0")


def check_arguments(plan: AttentionPlan, arguments: Arguments) -> CheckedArguments:
    """Check everything that does not depend on the GPU.

    Raises ArgumentError with all problems: each message names the argument, the expected and the
    given value.
    """
    check_layout(arguments.layout)
    views = {
        name: view
        for name, view in zip(TENSORS, arguments[:4], strict=True)
        if isinstance(view, TensorView)
    }
    refuse(wrong_axes(plan, views, arguments.layout))
    views = {
        name: with_batch(view) if is_packed(plan, name) else view for name, view in views.items()
    }
    if arguments.layout == "bhsd":
        views = {name: swap_rows_and_heads(view) for name, view in views.items()}
    problems = [*_check_types(plan, views), *_check_shapes(plan, views, arguments.layout)]
    problems += check_lse(plan, arguments.lse, views["query"])
    problems += check_tables(plan, arguments.tables, views["query"], largest_row_count(plan))
    sequences = sequences_of(plan, arguments.tables, views["query"])
    problems += check_counts(plan, views["query"], sequences)
    problems += check_descales(plan, arguments.descales, views["query"], views["key"], sequences)
    problems += check_sinks(plan, arguments.sinks, views["query"])
    problems += check_declared(
        plan, dict(arguments.tensors), views["query"], views["key"], sequences
    )
    problems += check_workspace(plan, arguments.workspace, views["query"].device)
    problems += _check_scale(plan, arguments.softmax_scale)
    refuse(problems)
    for name, view in views.items():
        problems += _check_memory(plan, name, view, arguments.layout)
    problems += check_values_in_keys(plan, views["key"], views["value"])
    refuse(problems)
    refuse(_check_overlap(plan, views, arguments))
    views = {name: _with_dtype_of(plan, name, view) for name, view in views.items()}
    batch, query_rows, query_heads, _ = views["query"].shape
    tables = {name: view for name, view in arguments.tables.items() if view is not None}
    if plan.is_ragged:
        batch = tables["query_offsets"].shape[0] - 1
    _, key_rows, key_heads, _ = views["key"].shape
    if plan.is_paged:
        key_rows = tables["page_table"].shape[1] * plan.key_source.page_rows
    return CheckedArguments(
        query=views["query"],
        key=views["key"],
        value=views["value"],
        out=views["out"],
        lse=arguments.lse,
        softmax_scale=float(arguments.softmax_scale),
        size=ProblemSize(
            batch, query_heads, query_heads // max(1, key_heads), query_rows, key_rows
        ),
        descales=arguments.descales,
        sinks=arguments.sinks,
        tables=tables,
        given={name: view for name, view in arguments.tensors if view is not None},
    )


def _dtype(plan: AttentionPlan, name: str) -> str:
    if name in ("key", "value"):
        return plan.kv_dtype
    return plan.out_dtype if name == "out" else plan.dtype


def _key_of_dtype(plan: AttentionPlan, name: str) -> str:
    """Return the config's key that a tensor has its type from."""
    if _dtype(plan, name) == plan.dtype:
        return "dtype"
    return "out_dtype" if name == "out" else "kv_dtype"


def _depth(plan: AttentionPlan, name: str) -> int:
    return plan.value_depth if name in ("value", "out") else plan.depth


def _element_bytes(plan: AttentionPlan, name: str) -> int:
    if name in ("key", "value"):
        return plan.kv_element_bytes
    return plan.out_element_bytes if name == "out" else plan.element_bytes


def _with_dtype_of(plan: AttentionPlan, name: str, view: TensorView) -> TensorView:
    """Name bit patterns by the type that they represent."""
    return view._replace(dtype=DTYPE_NAMES[_dtype(plan, name)])


def _check_types(plan: AttentionPlan, views: dict[str, TensorView]) -> list[Problem]:
    problems: list[Problem] = []
    device = views["query"].device
    for name, view in views.items():
        dtype = _dtype(plan, name)
        problems += wrong_dtype(name, view, dtype, DTYPE_NAMES, _key_of_dtype(plan, name))
        problems += wrong_device(name, view.device, device)
    return problems


def _check_shapes(plan: AttentionPlan, views: dict[str, TensorView], layout: str) -> list[Problem]:
    """Shapes by their meaning; messages show them in the caller's order of axes."""

    def shown(shape: tuple[object, ...], name: str) -> str:
        batch, rows, heads, depth = shape
        named = {"batch": batch, "rows": rows, "heads": heads, "depth": depth}
        return f"({', '.join(str(named[axis]) for axis in axes_of(plan, name, layout))})"

    problems = []
    shapes = {name: view.shape for name, view in views.items()}
    for name, shape in shapes.items():
        depth = _depth(plan, name)
        if shape[3] != depth:
            problems.append(
                wrong(name, f"depth {shape[3]} in {shown(shape, name)}", f"depth {depth}")
            )
        if max(shape) > INT32_MAX:
            problems.append(wrong(name, shown(shape, name), f"extents of at most {INT32_MAX}"))
    if problems:
        return problems
    query, key, value = (shapes[name] for name in ("query", "key", "value"))
    out = shapes.get("out", (*query[:3], plan.value_depth))
    limits = (("query", query, largest_query_count(plan)), ("key", key, largest_row_count(plan)))
    for name, shape, most in limits:
        if shape[1] > most:
            why = " (the most that its mask tells apart)" if most == plan.mask.most_rows else ""
            problems.append(wrong(name, f"{shape[1]} rows", f"at most {most} rows{why}"))
    if plan.page_size not in (None, key[1]):
        got = f"pages of {key[1]} rows"
        problems.append(wrong("key", got, f"pages of {plan.page_size} (the config's page_size)"))
    if key[0] != query[0] and not plan.is_ragged and not plan.is_paged:
        problems.append(wrong("key", f"batch {key[0]}", f"the query's batch, {query[0]}"))
    for name, shape, of, like in (("value", value, "key", key), ("out", out, "query", query)):
        expected = (*like[:3], plan.value_depth)
        if shape != expected:
            but = "" if expected == like else f" except for the depth, {plan.value_depth}"
            problems.append(
                wrong(name, shown(shape, name), f"the {of}'s shape{but}, {shown(expected, of)}")
            )
    if query[2] != 0 and (key[2] == 0 or query[2] % key[2]):
        problems.append(
            wrong(
                "key", f"{key[2]} heads", f"a number of heads that divides the query's {query[2]}"
            )
        )
    elif query[2] and query[2] // key[2] % plan.tile_heads:
        got = f"{key[2]} heads to the query's {query[2]}"
        multiple = f"each with a multiple of {plan.tile_heads} of the query's (config: tile_heads)"
        problems.append(wrong("key", got, multiple, "use a kernel with tile_heads: 1"))
    return problems


def _check_scale(plan: AttentionPlan, scale: float) -> list[Problem]:
    if not math.isfinite(scale) or scale <= 0:
        return [wrong("softmax_scale", repr(scale), "a finite number above 0")]
    # The kernel multiplies by a float32; below its normal numbers the products would lose bits.
    if not 2.0**-126 <= scale <= 2.0**126:
        return [wrong("softmax_scale", repr(scale), "a number that float32 holds")]
    if plan.score.IS_EXPRESSION and not 1 / SCORE_SCALE <= scale <= SCORE_SCALE:
        # What a score function adds is divided by it.
        return [wrong("softmax_scale", repr(scale), "from 2^-24 to 2^24, with a score function")]
    return []


def _check_memory(plan: AttentionPlan, name: str, view: TensorView, layout: str) -> list[Problem]:
    """Addresses and strides; a tensor without elements is never touched, and may have any."""
    if 0 in view.shape:
        return []
    remedy = f"pass a contiguous copy of {name}"
    source = plan.query_source if name in ("query", "out") else plan.key_source
    most = CLIPPED_STRIDE if source.clipped else MAX_STRIDE
    problems = list(wrong_address(name, view.pointer, ALIGNMENT, remedy))
    strides = dict(zip(AXES["bshd"], view.strides, strict=True))
    extents = dict(zip(AXES["bshd"], view.shape, strict=True))
    element_bytes = _element_bytes(plan, name)
    inner, what = "depth", "columns"
    if name == "value" and plan.has_lines_of_keys:
        inner, what = "rows", "keys (the config says value_major: keys)"
        remedy = "pass (batch, heads, depth, keys) with its axes permuted"
    if extents[inner] > 1 and strides[inner] != element_bytes:
        got = f"{strides[inner]} bytes"
        expected = f"a stride along {inner} of {element_bytes} bytes: contiguous {what}"
        problems.append(wrong(name, got, expected, remedy))
    for axis in AXES[layout]:
        if axis != inner and extents[axis] > 1:
            problems += wrong_stride(name, axis, strides[axis], remedy, most)
    if source.clipped and not problems and extents["batch"] > 1:
        batch, row = strides["batch"], row_step(view)
        if not row or batch % row or batch // row * extents["batch"] > END_ROW:
            what = "page" if source.name == "paged" else "batch"
            got = f"{batch} bytes from {what} to {what}, {row} from row to row"
            expected = f"a whole number of rows from {what} to {what}, {END_ROW} rows in all"
            problems.append(wrong(name, got, expected, remedy))
    maps = [row.dims for row in plan.tensor_maps if row.tensor == name]
    if not problems and CLIPPED_PANEL_DIMS in maps and most_places(view) > INT32_MAX:
        got = f"rows {strides['rows']} and heads {strides['heads']} bytes apart"
        expected = f"at most {INT32_MAX} steps of both strides' common divisor in all"
        problems.append(wrong(name, got, expected, remedy))
    if name == "out" and not problems:
        problems += meets_itself(name, view, remedy)
    return problems


def _check_overlap(
    plan: AttentionPlan, views: dict[str, TensorView], arguments: Arguments
) -> list[Problem]:
    """Refuse outputs that share memory with anything: other tiles may still read or write it."""
    inputs = [(name, views[name], _element_bytes(plan, name)) for name in ("query", "key", "value")]
    raised = {tensor.name for tensor in plan.config.raised_tensors}
    small = {**arguments.float32_inputs, **arguments.tables}
    inputs += [
        (name, view, FLOAT32_BYTES)  # an int32 has as many bytes
        for name, view in small.items()
        if view is not None and name not in raised
    ]
    outputs = [("out", views["out"], plan.out_element_bytes)]
    written = {"lse": arguments.lse, **{name: small.get(name) for name in raised}}
    outputs += [(name, view, FLOAT32_BYTES) for name, view in written.items() if view is not None]
    if arguments.workspace is not None:
        element = ELEMENT_BYTES[arguments.workspace.dtype]
        outputs.append(("workspace", arguments.workspace, element))
    return list(overlaps(outputs, inputs))
