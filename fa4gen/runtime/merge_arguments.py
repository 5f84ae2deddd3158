"""The arguments of a call of a merging kernel, checked before anything is launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fa4gen.runtime.memory_overlap import may_overlap_itself, overlaps
from fa4gen.runtime.refusal import refuse, unwanted, wrong, wrong_address, wrong_device
from fa4gen.runtime.strides import ALIGNMENT, meets_itself, wrong_dtype, wrong_stride

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.merge.model import MergePlan
    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

MERGE_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
MOST_ROWS = 2**31 - 1
FLOAT32_BYTES = 4
AXES = {
    "parts": ("part", "batch", "row", "head", "column"),
    "part_lse": ("part", "batch", "head", "row"),
    "out": ("batch", "row", "head", "column"),
    "lse": ("batch", "head", "row"),
}


class MergeArguments(NamedTuple):
    """The arguments of one call; without batches, each tensor has one axis less."""

    parts: TensorView
    part_lse: TensorView
    out: TensorView | None
    lse: TensorView | None

    @property
    def device(self) -> int:
        """The parts' GPU, which must be that of all."""
        return self.parts.device


@dataclass(frozen=True)
class CheckedMerge:
    """Arguments that the kernel can work on, each with an axis of batches."""

    views: dict[str, TensorView]

    @property
    def num_rows(self) -> int:
        """Rows of all heads and batches."""
        batch, rows, heads, _ = self.views["out"].shape
        return batch * rows * heads

    def values(self) -> dict[str, int]:
        """Return every parameter of the kernel, by its name."""
        batch, rows, heads, _ = self.views["out"].shape
        found = {name: view.pointer for name, view in self.views.items()}
        found |= {"num_parts": self.views["parts"].shape[0]}
        found |= {"batch": batch, "rows": rows, "heads": heads}
        for name, view in self.views.items():
            element = view.strides[-1] if name in ("parts", "out") else FLOAT32_BYTES
            axes = [axis for axis in AXES[name] if axis != "column"]
            for axis, stride in zip(axes, view.strides, strict=False):
                found[f"{name}_{axis}_stride"] = stride // element
        return found


def check_merge_arguments(plan: MergePlan, arguments: MergeArguments) -> CheckedMerge:
    """Check everything that does not depend on the GPU; ArgumentError with all problems."""
    given = {name: view for name, view in arguments._asdict().items() if view is not None}
    parts = arguments.parts
    if len(parts.shape) not in (4, 5):
        refuse([wrong("parts", f"{len(parts.shape)} axes", "(parts, batch, rows, heads, depth), "
                                                           "or without the batch")])  # fmt: skip
    has_batch = len(parts.shape) == 5
    shape = parts.shape
    *lead, rows, heads, depth = shape[1:]
    expected = {
        "parts": (*shape[:-1], plan.depth),
        "part_lse": (shape[0], *lead, heads, rows),
        "out": (*shape[1:-1], plan.depth),
        "lse": (*lead, heads, rows),
    }
    problems: list[Problem] = []
    if "lse" in given and not plan.lse:
        problems.append(unwanted("lse", "this kernel was generated with lse: false"))
        del given["lse"]
    for name, view in given.items():
        axes = [axis for axis in AXES[name] if has_batch or axis != "batch"]
        if view.shape != expected[name]:
            words = f"({', '.join(axes)}) = {expected[name]}"
            problems.append(wrong(name, f"shape {view.shape}", words))
            continue
        problems += _check_memory(plan, name, view, axes, parts.device)
    for name in {"out", *(["lse"] if plan.lse else [])} - set(given):
        if parts.device >= 0:
            problems.append(wrong(name, "nothing", f"an array {expected[name]}"))
    refuse(problems)
    refuse(_check_overlap(plan, given))
    if not has_batch:
        given = {name: _with_batch(name, view) for name, view in given.items()}
    checked = CheckedMerge(given)
    if checked.num_rows > MOST_ROWS:
        got = f"{checked.num_rows} rows of all heads and batches"
        refuse([wrong("parts", got, f"at most {MOST_ROWS}")])
    if shape[0] > MOST_ROWS:
        refuse([wrong("parts", f"{shape[0]} of them", f"at most {MOST_ROWS}")])
    del depth
    return checked


def _with_batch(name: str, view: TensorView) -> TensorView:
    at = 1 if name in ("parts", "part_lse") else 0
    shape, strides = view.shape, view.strides
    return view._replace(
        shape=(*shape[:at], 1, *shape[at:]), strides=(*strides[:at], 0, *strides[at:])
    )


def _check_memory(
    plan: MergePlan, name: str, view: TensorView, axes: list[str], device: int
) -> Iterator[Problem]:
    is_lse = name in ("lse", "part_lse")
    dtype = "fp32" if is_lse else plan.out_dtype if name == "out" else plan.dtype
    word = "out_dtype" if name == "out" else "dtype"
    if is_lse and view.dtype != "float32":
        yield wrong(name, view.dtype, "float32")
    elif not is_lse:
        yield from wrong_dtype(name, view, dtype, MERGE_DTYPES, word)
    yield from wrong_device(name, view.device, device, "the parts'")
    if view.device < 0 or 0 in view.shape:
        return
    remedy = f"pass a contiguous copy of {name}"
    yield from wrong_address(name, view.pointer, FLOAT32_BYTES if is_lse else ALIGNMENT, remedy)
    element = {"bf16": 2, "fp16": 2, "fp32": 4}[dtype]
    for axis, stride, extent in zip(axes, view.strides, view.shape, strict=True):
        if axis == "column" and stride != element:
            expected = f"a stride along depth of {element} bytes: contiguous columns"
            yield wrong(name, f"{stride} bytes", expected, remedy)
        elif axis != "column" and extent > 1 and is_lse and (stride < 0 or stride % FLOAT32_BYTES):
            expected = f"a stride along {axis} of whole elements"
            yield wrong(name, f"{stride} bytes", expected, remedy)
        elif axis != "column" and extent > 1 and not is_lse:
            yield from wrong_stride(name, axis, stride, remedy)
    if name in ("out", "lse"):
        yield from meets_itself(name, view, remedy)


def _check_overlap(plan: MergePlan, given: dict[str, TensorView]) -> Iterator[Problem]:
    """Refuse outputs that share memory with anything but the part that they are."""
    sizes = {"parts": plan.element_bytes, "out": plan.out_element_bytes}
    rows = {name: (name, view, sizes.get(name, FLOAT32_BYTES)) for name, view in given.items()}
    for output, of_parts in (("out", "parts"), ("lse", "part_lse")):
        if output not in given:
            continue
        inputs = [rows[name] for name in ("parts", "part_lse")]
        if _is_a_part(given[output], given[of_parts]):
            inputs.remove(rows[of_parts])
            if may_overlap_itself(given[of_parts]):
                got = f"strides of {given[of_parts].strides} bytes"
                yield wrong(
                    of_parts, got, f"elements that do not overlap, where {output} is a part"
                )
        yield from overlaps([rows[output]], inputs)
    if "lse" in given:
        yield from overlaps([rows["lse"]], [rows["out"]])


def _is_a_part(view: TensorView, parts: TensorView) -> bool:
    """Whether a view is one of the parts: at its place, with its strides and type."""
    if 0 in parts.shape or view.dtype != parts.dtype:
        return False
    same = all(
        extent == 1 or own == other
        for own, other, extent in zip(view.strides, parts.strides[1:], view.shape, strict=True)
    )
    step, apart = parts.strides[0], view.pointer - parts.pointer
    places = range(0, step * parts.shape[0], step) if step else (0,)
    return same and apart in places
