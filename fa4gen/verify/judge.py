"""Judges what a kernel left in memory: every byte of it, not only the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify import tolerance
from fa4gen.verify.memory import out_bits, outside, read_lse, read_out
from fa4gen.verify.reference import AttentionResult
from fa4gen.verify.rounding import POISON_BITS
from fa4gen.verify.verdict import Failure, Reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from fa4gen.verify.memory import CaseMemory, Image
    from fa4gen.verify.tolerance import Errors


def judge(
    memory: CaseMemory,
    after: Mapping[str, Image],
    again: Mapping[str, Image],
    reference: Reference,
    xp: Any = np,
) -> tuple[tuple[Failure, ...], Errors]:
    """Compare the buffers after two runs with what they were before and with what is right.

    Returns what is wrong, and the errors of the first run.
    """
    failures = [
        *_changed_inputs(memory, after),
        *_broken_guards(memory, after),
        *_differing_runs(memory, after, again),
        *_unwritten(memory, after),
    ]
    got = AttentionResult(
        xp.asarray(read_out(memory, after)), _as_array(read_lse(memory, after), xp)
    )
    with np.errstate(invalid="ignore"):  # what was never written is a signalling NaN
        errors = tolerance.measure(got, reference.exact, xp)
        failures += _wrong_numbers(got, reference, errors, xp)
    return tuple(failures), errors


def _as_array(array: NDArray[np.float32] | None, xp: Any) -> Any:
    return None if array is None else xp.asarray(array)


def _changed_inputs(memory: CaseMemory, after: Mapping[str, Image]) -> Iterator[Failure]:
    outputs = {memory.views[name].buffer for name in ("out", "lse") if name in memory.views}
    for buffer, image in memory.buffers.items():
        if buffer in outputs or np.array_equal(image, after[buffer]):
            continue
        at = int(np.flatnonzero(image != after[buffer])[0])
        inside = [
            (name, place)
            for name, view in memory.views.items()
            if view.buffer == buffer and (place := _element_at(view.bits(image), image, at))
        ]
        where = f"{inside[0][0]}{inside[0][1]}" if inside else "memory beside its elements"
        yield Failure("inputs", f"the input buffer of {buffer} was written to: {where}")


def _broken_guards(memory: CaseMemory, after: Mapping[str, Image]) -> Iterator[Failure]:
    for name in ("out", "lse"):
        view = memory.views.get(name)
        if view is None:
            continue
        changed = (memory.buffers[view.buffer] != after[view.buffer]) & outside(memory, name)
        where = np.flatnonzero(changed)
        if where.size:
            first = int(where[0]) - view.offset
            yield Failure(
                "guard",
                f"{where.size} bytes that are not {name}'s were written, the first "
                f"{abs(first)} bytes {'after' if first >= 0 else 'before'} its first element",
            )


def _differing_runs(
    memory: CaseMemory, after: Mapping[str, Image], again: Mapping[str, Image]
) -> Iterator[Failure]:
    for name in ("out", "lse"):
        view = memory.views.get(name)
        if view is None:
            continue
        first, second = view.bits(after[view.buffer]), view.bits(again[view.buffer])
        different = first != second
        if different.any():
            index = tuple(int(i) for i in np.argwhere(different)[0])
            yield Failure(
                "repeat",
                f"two runs on the same inputs differ in {int(different.sum())} elements of {name}, "
                f"the first at {_place(name, _logical(memory, name, index))}",
            )


def _unwritten(memory: CaseMemory, after: Mapping[str, Image]) -> Iterator[Failure]:
    for name in ("out", "lse"):
        view = memory.views.get(name)
        if view is None:
            continue
        bits = out_bits(memory, after) if name == "out" else view.bits(after[view.buffer])
        poisoned = bits == POISON_BITS[view.dtype]
        if poisoned.any():
            index = tuple(int(i) for i in np.argwhere(poisoned)[0])
            yield Failure(
                "unwritten",
                f"{int(poisoned.sum())} of {poisoned.size} elements of {name} were never written, "
                f"the first at {_place(name, _logical(memory, name, index))}",
            )


def _wrong_numbers(
    got: AttentionResult, reference: Reference, errors: Errors, xp: Any
) -> Iterator[Failure]:
    exact, bounds = reference.exact, reference.bounds
    above = [name for name, error in errors if not error <= getattr(bounds, name)]
    out_above = [name for name in above if name != "lse"]
    if out_above:
        index = _worst_element(got.out, exact.out, row_first=out_above == ["row"], xp=xp)
        yield Failure(
            "numbers", _comparison("out", got.out, exact.out, index, out_above, errors, bounds)
        )
    if "lse" in above:
        index = _worst_element(got.lse, exact.lse, row_first=False, xp=xp)
        yield Failure(
            "numbers", _comparison("lse", got.lse, exact.lse, index, ["lse"], errors, bounds)
        )


def _comparison(
    name: str,
    got: Any,
    exact: Any,
    index: tuple[int, ...],
    above: list[str],
    errors: Errors,
    bounds: Errors,
) -> str:
    limits = ", ".join(
        f"{_MEANING[error]} {getattr(errors, error):.3g}, at most {getattr(bounds, error):.3g}"
        for error in above
    )
    expected, found = float(exact[index]), float(got[index])
    return f"{limits}; {_place(name, index)}: expected {expected:.6g}, got {found:.6g}"


_MEANING = {
    "frobenius": "relative Frobenius error",
    "row": "relative error of the worst row",
    "element": "largest error",
    "lse": "largest error of the log-sum-exp",
}


def _worst_element(got: Any, exact: Any, *, row_first: bool, xp: Any) -> tuple[int, ...]:
    """Find the largest distance; with ``row_first``, in the row of largest relative error."""
    # Where both are -inf, or got is NaN, the difference says nothing: settle these first.
    same = (got == exact) | (xp.isneginf(exact) & xp.isneginf(got))
    distance = xp.abs(xp.where(same, 0.0, got.astype(xp.float64) - xp.where(same, 0.0, exact)))
    distance = xp.where(xp.isnan(distance), xp.inf, distance)
    if row_first:
        squares = (exact**2).sum(axis=3)
        ratio = (distance**2).sum(axis=3) / xp.where(squares > 0, squares, 1e-300)
        b, s, h = np.unravel_index(int(ratio.argmax()), ratio.shape)
        return int(b), int(s), int(h), int(distance[b, s, h].argmax())
    return tuple(int(i) for i in np.unravel_index(int(distance.argmax()), distance.shape))


def _logical(memory: CaseMemory, name: str, index: tuple[int, ...]) -> tuple[int, ...]:
    """Turn an index by the launcher's axes into one by (batch, row, head, column)."""
    if name == "out" and memory.layout == "bhsd":
        batch, head, row, column = index
        return batch, row, head, column
    return index


def _place(name: str, index: tuple[int, ...]) -> str:
    axes = ("batch", "head", "row") if name == "lse" else ("batch", "row", "head", "column")
    words = ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))
    return f"{name}[{words}]"


def _element_at(bits: NDArray[Any], image: Image, byte: int) -> str:
    """Say which element of a strided view covers a byte of its buffer; "" when none does."""
    owner = np.zeros(image.size, dtype=np.bool_)
    element = bits.itemsize
    offset = bits.__array_interface__["data"][0] - image.__array_interface__["data"][0]
    view = np.ndarray((*bits.shape, element), np.bool_, owner.data, offset, (*bits.strides, 1))
    owner[byte] = True
    found = np.argwhere(view)
    return f"[{', '.join(map(str, found[0][:-1]))}]" if found.size else ""
