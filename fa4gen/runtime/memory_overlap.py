"""Whether arrays share memory, decided from addresses and strides alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fa4gen.runtime.arguments import TensorView

MAX_WORK = 100_000
"""Steps that NumPy may search for a common byte; layouts that occur in practice need a handful."""


def may_overlap(a: TensorView, a_bytes: int, b: TensorView, b_bytes: int) -> bool:
    """Whether an element of ``a`` shares a byte with one of ``b`` (elements of so many bytes).

    Exact, so that interleaved views of one buffer pass; only where the search takes too long,
    overlapping address ranges count as overlap.
    """
    a_begin, a_end = _address_range(a, a_bytes)
    b_begin, b_end = _address_range(b, b_bytes)
    if a_begin >= b_end or b_begin >= a_end or a.device != b.device:
        return False
    import numpy as np

    first, second = _Addresses(a, a_bytes).array(), _Addresses(b, b_bytes).array()
    try:
        # The stubs know only two special values of max_work, which takes any count.
        return bool(np.shares_memory(first, second, MAX_WORK))  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def may_overlap_itself(view: TensorView) -> bool:
    """Whether two elements can share a byte.

    Every axis has to step over all shorter-stepping ones: true of whatever slicing and transposing
    make of a contiguous array.
    """
    reach = 0
    for stride, extent in sorted(zip(view.strides, view.shape, strict=True)):
        if extent > 1:
            if stride <= reach:
                return True
            reach += stride * (extent - 1)
    return False


def _address_range(view: TensorView, element_bytes: int) -> tuple[int, int]:
    """First byte and first byte behind; empty for an array without elements."""
    if 0 in view.shape:
        return view.pointer, view.pointer
    spans = [stride * (extent - 1) for stride, extent in zip(view.strides, view.shape, strict=True)]
    begin = view.pointer + sum(span for span in spans if span < 0)
    end = view.pointer + sum(span for span in spans if span > 0) + element_bytes
    return begin, end


class _Addresses:
    """Lets NumPy compute with the addresses of device memory; nothing is read through it."""

    def __init__(self, view: TensorView, element_bytes: int) -> None:
        self.__array_interface__ = {
            "version": 3,
            "shape": view.shape,
            "strides": view.strides,
            "typestr": f"|V{element_bytes}",
            "data": (view.pointer, True),
        }

    def array(self) -> NDArray[np.void]:
        import numpy as np

        return np.asarray(self)
