"""Types and strides of tensors that TMA reads and writes: of attention and of matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.runtime.memory_overlap import may_overlap_itself
from fa4gen.runtime.refusal import wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

ALIGNMENT = 16
"""Bytes: TMA reads, and the epilogue writes, in pieces of 16."""
MAX_STRIDE = 2**40 - 1
"""Bytes: the widest stride that a tensor map can hold."""
CLIPPED_STRIDE = 2**34 - ALIGNMENT
"""Bytes: the widest stride of rows of a map that ends at any row, which takes END_ROW rows back by
a stride of 2^34 less this."""
BITS_ACCEPTED = dict.fromkeys(("fp8_e4m3", "fp8_e5m2", "fp4_e2m1", "ue8m0", "ue4m3"), "uint8")
"""Types with bit patterns that are accepted, too: CuPy has no fp8."""


def wrong_dtype(
    name: str, view: TensorView, dtype: str, names: Mapping[str, str], word: str
) -> Iterator[Problem]:
    """Yield the error in a tensor's type, if any; ``word`` is the config's key that decides it."""
    if view.dtype not in (names[dtype], BITS_ACCEPTED.get(dtype)):
        also = f", or its bits as {BITS_ACCEPTED[dtype]}" if dtype in BITS_ACCEPTED else ""
        expected = f"{names[dtype]}{also} (the config says {word}: {dtype})"
        yield wrong(name, view.dtype, expected)


def wrong_stride(
    name: str, axis: str, stride: int, remedy: str, most: int = MAX_STRIDE
) -> Iterator[Problem]:
    """Yield the error in the stride of an axis that is not contiguous, if any."""
    if stride % ALIGNMENT or not 0 <= stride <= most:
        expected = (
            f"a stride along {axis} that is a multiple of {ALIGNMENT} bytes, from 0 to {most}"
        )
        yield wrong(name, f"{stride} bytes", expected, remedy)


def meets_itself(name: str, view: TensorView, remedy: str) -> Iterator[Problem]:
    """Yield the error of an output of which two elements share memory, if they do."""
    if may_overlap_itself(view):
        got = f"strides of {view.strides} bytes"
        yield wrong(name, got, "elements that do not overlap", remedy)
