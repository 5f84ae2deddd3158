"""Whether arrays share memory, decided from addresses and strides alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.refusal import wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView


def may_overlap(a: TensorView, a_bytes: int, b: TensorView, b_bytes: int) -> bool:
    """Whether the address ranges of two views meet; elements have ``a_bytes`` and ``b_bytes``.

    Views that are different columns of one buffer, such as query, key, value and output of a packed
    projection, do not overlap: see ``_are_columns``. As in the vendored launcher.
    """
    if 0 in a.shape or 0 in b.shape or a.device != b.device:
        return False
    a_begin, a_end = _address_range(a, a_bytes)
    b_begin, b_end = _address_range(b, b_bytes)
    if a_begin >= b_end or b_begin >= a_end:
        return False
    return not any(
        _are_columns(a, a_bytes, b, b_bytes, pitch) for pitch in {*_steps(a), *_steps(b)}
    )


def _are_columns(a: TensorView, a_bytes: int, b: TensorView, b_bytes: int, pitch: int) -> bool:
    """Whether both views repeat after ``pitch`` bytes, and do not meet within these."""
    a_width, b_width = _width(a, a_bytes, pitch), _width(b, b_bytes, pitch)
    if a_width is None or b_width is None:
        return False
    apart = (_address_range(b, b_bytes)[0] - _address_range(a, a_bytes)[0]) % pitch
    return a_width <= apart and b_width <= pitch - apart


def _width(view: TensorView, element_bytes: int, pitch: int) -> int | None:
    """Return the bytes that a view takes of each ``pitch``; None for other steps beyond it."""
    width = element_bytes
    for stride, extent in zip(view.strides, view.shape, strict=True):
        if abs(stride) < pitch:
            width += abs(stride) * (extent - 1)
        elif extent > 1 and stride % pitch:
            return None
    return width


def _steps(view: TensorView) -> set[int]:
    """Return the distances between neighbours along axes with several elements."""
    pairs = zip(view.strides, view.shape, strict=True)
    return {abs(stride) for stride, extent in pairs if extent > 1 and stride}


def may_overlap_itself(view: TensorView) -> bool:
    """Whether two elements can share a byte.

    Every axis must step over all axes of shorter stride, as in every slice and transpose of a
    contiguous array.
    """
    reach = 0
    for stride, extent in sorted(zip(view.strides, view.shape, strict=True)):
        if extent > 1:
            if stride <= reach:
                return True
            reach += stride * (extent - 1)
    return False


def _address_range(view: TensorView, element_bytes: int) -> tuple[int, int]:
    """First byte, and the first past the end, of a view that has elements."""
    spans = [stride * (extent - 1) for stride, extent in zip(view.strides, view.shape, strict=True)]
    begin = view.pointer + sum(span for span in spans if span < 0)
    end = view.pointer + sum(span for span in spans if span > 0) + element_bytes
    return begin, end


def overlaps(
    outputs: Sequence[tuple[str, TensorView, int]], inputs: Sequence[tuple[str, TensorView, int]]
) -> Iterator[Problem]:
    """Yield each output that may share memory with an input or an output before it.

    Each is a name, a view and the bytes of an element.
    """
    pairs = [(output, other) for output in outputs for other in inputs]
    pairs += [(output, other) for i, output in enumerate(outputs) for other in outputs[:i]]
    for (name, view, size), (other_name, other, other_size) in pairs:
        if may_overlap(view, size, other, other_size):
            yield wrong(name, f"memory that overlaps the {other_name}'s", "memory of its own")
