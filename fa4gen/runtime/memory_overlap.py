"""Whether arrays share memory, decided from addresses and strides alone."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fa4gen.runtime.refusal import wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fa4gen.errors import Problem
    from fa4gen.runtime.tensor_view import TensorView

MAX_WORK = 20_000
"""Steps of a search; layouts that occur in practice need a handful. As in the vendored launcher."""
MAX_SPAN = 2**62
"""Bytes: more than any memory."""


class _Term(NamedTuple):
    """``coefficient * x`` with x from 0 to ``limit``."""

    coefficient: int
    limit: int


def may_overlap(a: TensorView, a_bytes: int, b: TensorView, b_bytes: int) -> bool:
    """Whether an element of ``a`` shares a byte with one of ``b`` (elements of so many bytes).

    Exact, so that interleaved views of one buffer pass; only where the search takes too long,
    overlapping address ranges count as overlap.
    """
    if 0 in a.shape or 0 in b.shape or a.device != b.device:
        return False
    a_begin, a_end = _address_range(a, a_bytes)
    b_begin, b_end = _address_range(b, b_bytes)
    if a_begin >= b_end or b_begin >= a_end:
        return False
    if max(a_end - a_begin, b_end - b_begin) > MAX_SPAN:
        return True
    # A shared byte: a + (steps in a) = b + (steps in b). Counting the steps in b from its end makes
    # every term positive: (steps in a) + (steps in b from its end) = (b_end - 1) - a_begin.
    return _has_sum(_terms((a, a_bytes), (b, b_bytes)), b_end - 1 - a_begin, _Budget())


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


@dataclass
class _Budget:
    """Steps that a search may still take."""

    steps: int = MAX_WORK


def _terms(*views: tuple[TensorView, int]) -> list[_Term]:
    """Return terms whose sums reach every byte of the views from their first, largest steps first.

    Steps of the same length are one term.
    """
    limits: Counter[int] = Counter()
    for view, element_bytes in views:
        for stride, extent in zip(view.strides, view.shape, strict=True):
            limits[abs(stride)] += extent - 1
        limits[1] += element_bytes - 1
    return [
        _Term(coefficient, limits[coefficient])
        for coefficient in sorted(limits, reverse=True)
        if coefficient and limits[coefficient]
    ]


def _has_sum(terms: Sequence[_Term], target: int, budget: _Budget) -> bool:
    """Whether the terms, the largest coefficient first, can have the sum ``target``.

    Also True where the budget is exhausted.
    """
    reach = 0  # the smallest terms, as far as their sums are all numbers up to this one
    larger = list(terms)
    while larger and larger[-1].coefficient <= reach + 1:
        last = larger.pop()
        reach += last.coefficient * last.limit
    if not larger:
        return target <= reach
    budget.steps -= 1
    if budget.steps < 0:
        return True
    above = sum(term.coefficient * term.limit for term in larger)
    if target > reach + above:
        return False
    divisor = math.gcd(*(term.coefficient for term in larger))
    if divisor > max(1, reach):  # multiples of it, and the small terms the rest
        if target % divisor > reach:
            return False
        reduced = [term._replace(coefficient=term.coefficient // divisor) for term in larger]
        return _has_sum(reduced, target // divisor, budget)
    first = terms[0]
    others = above + reach - first.coefficient * first.limit
    least = max(0, -(-(target - others) // first.coefficient))
    most = min(target // first.coefficient, first.limit)
    return any(
        _has_sum(terms[1:], target - x * first.coefficient, budget) for x in range(least, most + 1)
    )


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
