"""A comparison of memory after a kernel with the expected bytes: all of them, not only results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.rounding import POISON_BITS, WITHOUT_NAN
from fa4gen.verify.verdict import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from fa4gen.verify.buffers import CaseMemory, Image
    from fa4gen.verify.errors import ErrorSet
    from fa4gen.verify.verdict import Reference


def judge(
    memory: CaseMemory,
    after: Mapping[str, Image],
    again: Mapping[str, Image],
    reference: Reference,
    xp: Any = np,
) -> tuple[tuple[Failure, ...], ErrorSet]:
    """Compare the buffers after two runs with their earlier contents and the exact results.

    Returns the findings, and the errors of the first run.
    """
    failures = [
        *_changed_inputs(memory, after),
        *_broken_guards(memory, after),
        *_differing_runs(memory, after, again),
        *_unwritten(memory, after),
    ]
    with np.errstate(invalid="ignore"):  # elements that were never written are signalling NaNs
        errors, wrong = reference.compare(memory, after, xp)
    return (*failures, *wrong), errors


def _changed_inputs(memory: CaseMemory, after: Mapping[str, Image]) -> Iterator[Failure]:
    outputs = {view.buffer for view in memory.outputs.values()}
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
    for name, view in memory.outputs.items():
        changed = (memory.buffers[view.buffer] != after[view.buffer]) & memory.outside(name)
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
    for name, view in memory.outputs.items():
        first, second = view.bits(after[view.buffer]), view.bits(again[view.buffer])
        different = first != second
        if different.any():
            index = tuple(int(i) for i in np.argwhere(different)[0])
            yield Failure(
                "repeat",
                f"two runs on the same inputs differ in {int(different.sum())} elements of {name}, "
                f"the first at {memory.place_of(name, index)}",
            )


def _unwritten(memory: CaseMemory, after: Mapping[str, Image]) -> Iterator[Failure]:
    for name, view in memory.outputs.items():
        if view.dtype in WITHOUT_NAN:
            continue
        poisoned = view.bits(after[view.buffer]) == POISON_BITS[view.dtype]
        if poisoned.any():
            index = tuple(int(i) for i in np.argwhere(poisoned)[0])
            yield Failure(
                "unwritten",
                f"{int(poisoned.sum())} of {poisoned.size} elements of {name} were never written, "
                f"the first at {memory.place_of(name, index)}",
            )


def _element_at(bits: NDArray[Any], image: Image, byte: int) -> str:
    """Say which element of a strided view covers a byte of its buffer; "" when none does."""
    owner = np.zeros(image.size, dtype=np.bool_)
    element = bits.itemsize
    offset = bits.__array_interface__["data"][0] - image.__array_interface__["data"][0]
    view = np.ndarray((*bits.shape, element), np.bool_, owner.data, offset, (*bits.strides, 1))
    owner[byte] = True
    found = np.argwhere(view)
    return f"[{', '.join(map(str, found[0][:-1]))}]" if found.size else ""
