"""Quantised outputs in verify: what the scales and the elements may be.

A kernel quantises its float32 result, of which each element is known within an interval: one number
where all sums are exact. What follows from it is what ``fa4gen.scales.quantize`` makes of it:

* A block's amax is between the largest of the least magnitudes of its elements and the largest of
  the greatest. A scale never falls as the amax grows, so it is between those of both ends. One of
  float32 must also be the scale of some amax in between: most numbers near it are not.
* The elements are multiplied by a factor of the kernel's own amax, of which its scale leaves one
  number or two neighbours, and rounded. Both are monotone, too: an element is between what its
  ends become.

Where the float32 result is exact, both are single numbers, and the kernel has to be right to the
bit, but for the sign of zeros. Elements are compared as the numbers that they stand for, with their
scale and that of their tensor.

The scale of a block of fp4 with a NaN has to be NaN, and so are then all numbers of the block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.designs.common.values import SHARED_BYTE
from fa4gen.scales.atoms import ATOM_ROWS, arrange, restore
from fa4gen.scales.forms import ScaleForm, form_of
from fa4gen.scales.narrow import ELEMENTS, decode, encode
from fa4gen.scales.quantize import (
    LARGEST_FLOAT,
    LEAST_AMAX,
    SCALE_NAN,
    by_block,
    scale_values,
    scales_of_amax,
    to_elements,
)
from fa4gen.verify.gemm.memory import rows_of_groups
from fa4gen.verify.rounding import WITHOUT_NAN
from fa4gen.verify.verdict import Failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.gemm_scales import OutputScales
    from fa4gen.scales.narrow import Element
    from fa4gen.verify.buffers import Image
    from fa4gen.verify.gemm.memory import GemmMemory
    from fa4gen.verify.gemm.tolerance import GemmResult

ONE = np.float32(1.0)
NEIGHBOURS = 2
"""Numbers of float32 on either side of scale * largest that may be the amax of a scale."""


@dataclass(frozen=True)
class Quantising:
    """How a case's output is quantised."""

    scales: OutputScales
    of_tensor: np.float32 = ONE
    """The scale of the whole tensor; 1 for forms without one."""

    @property
    def form(self) -> ScaleForm:
        """The form, with the types of elements and scales."""
        scales = self.scales
        return form_of(scales.form, element=scales.element, scale=scales.dtype)

    @property
    def kind(self) -> Element:
        """The type of the elements."""
        return ELEMENTS[self.scales.element]

    @property
    def hides_nan(self) -> bool:
        """Whether elements cannot be NaN, so that the scale of their block is."""
        return self.scales.element in WITHOUT_NAN

    def values(self, bits: Any, xp: Any) -> Any:
        """Return the numbers of scales."""
        form = self.form
        return bits.view(xp.float32) if form.scale == "fp32" else scale_values(bits, form, xp)

    def of_amax(self, amax: Any, xp: Any) -> tuple[Any, Any]:
        """Return the scales of blocks, and by what their elements are multiplied."""
        return scales_of_amax(amax, self.form, self.of_tensor, xp)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def quantised_own(result: GemmResult, how: Quantising, xp: Any = np) -> GemmResult:
    """Return a float32 result whose ``own`` is quantised, with the scales that it has itself."""
    own, factors = how.of_amax(_amax(xp.abs(result.own), how.form, xp), xp)
    factors = to_elements(factors, result.own.shape, how.form, xp)
    patterns = encode(_clipped(result.own, xp) * factors, how.kind, xp)
    if how.hides_nan:
        own = xp.where(_hidden(result.own, how, xp), np.uint8(SCALE_NAN[how.form.scale]), own)
    got, quantised = dequantised(decode(patterns, how.kind, xp), result, own, how, xp)
    return replace(quantised, own=got)


def plain_scales(
    memory: GemmMemory, after: Mapping[str, Image], scales: OutputScales
) -> tuple[Any, tuple[Failure, ...]]:
    """Return the scales of an output row by row, and the failure of wrong padding."""
    view, groups = memory.views[scales.name], memory.groups
    m, n = memory.views["out"].shape[-2:]
    n *= SHARED_BYTE.get(scales.element, 1)
    found = view.bits(after[view.buffer])
    atoms = np.ascontiguousarray(found if found.ndim == len(scales.axes) else found[None])
    if groups is None:
        plain = restore(atoms, m, scales.blocks(n))
        expected = arrange(plain)
    else:
        by_group = restore(atoms, ATOM_ROWS * atoms.shape[1], scales.blocks(n))
        rows = groups.from_atoms(by_group)
        rows[groups.rows_of_none()] = 0
        plain, there = rows_of_groups(groups, rows), ~groups.atoms_of_none()
        atoms, expected = atoms[there], arrange(groups.in_atoms(rows, 0))[there]
    wrong = int((expected != atoms).sum())
    message = f"{wrong} scales past the end of the rows or of the blocks are not 0"
    return plain, (Failure("numbers", message),) if wrong else ()


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def check_scales(
    memory: GemmMemory, result: GemmResult, got: Any, how: Quantising, xp: Any = np
) -> tuple[Failure, ...]:
    """Return the failure of scales that no result in its interval has; ``got`` are their bits."""
    if not got.size:
        return ()
    values = how.values(got, xp)
    known = _known_amax(values, result, how, xp)
    low, high = (how.values(how.of_amax(end, xp)[0], xp) for end in _amax_ends(result, how, xp))
    right = (values >= low) & (values <= high) & known.any(axis=0)
    if how.hides_nan:
        hidden = _hidden(result.exact, how, xp)
        low, high = (xp.where(hidden, np.float32(np.nan), end) for end in (low, high))
        right = xp.where(hidden, xp.isnan(values), right)
    wrong = xp.logical_not(right)
    count = int(wrong.sum())
    if not count:
        return ()
    first = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))
    shown = first[3 - len(memory.views[how.scales.name].shape) :]
    message = (
        f"{count} of {wrong.size} scales of blocks are not those of their amax; "
        f"{memory.place_of(how.scales.name, shown)}: expected {float(low[first]):.9g} to "
        f"{float(high[first]):.9g}, got {float(values[first]):.9g}"
    )
    return (Failure("numbers", message),)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def dequantised(
    elements: Any, result: GemmResult, scales: Any, how: Quantising, xp: Any = np
) -> tuple[Any, GemmResult]:
    """Return the numbers that elements stand for, and those that ``result`` may become.

    ``scales``: the bits of those that the kernel wrote, which decide what an element may be.
    """
    shape, kind = result.low.shape, how.kind
    low, high = (to_elements(one, shape, how.form, xp) for one in _factors(scales, result, how, xp))
    each = to_elements(how.values(scales, xp), shape, how.form, xp).astype(xp.float64)
    each *= float(how.of_tensor)
    lowest = xp.minimum(_clipped(result.low, xp) * low, _clipped(result.low, xp) * high)
    highest = xp.maximum(_clipped(result.high, xp) * low, _clipped(result.high, xp) * high)
    ends = (decode(encode(end, kind, xp), kind, xp) for end in (lowest, highest))
    low, high = (end * each for end in ends)
    exact = result.exact
    if how.hides_nan:
        exact = xp.where(xp.isnan(each), np.nan, exact)
    return elements * each, replace(result, exact=exact, low=low, high=high)


def _clipped(values: Any, xp: Any) -> Any:
    return xp.clip(values, np.float32(-LARGEST_FLOAT), np.float32(LARGEST_FLOAT))


def _amax(sizes: Any, form: ScaleForm, xp: Any) -> Any:
    """Return the amax of blocks as quantize has it; ``sizes`` may be NaN or infinite."""
    counted = xp.where(xp.isnan(sizes), np.float32(0), sizes)
    counted = xp.minimum(counted, np.float32(LARGEST_FLOAT)).astype(xp.float32)
    return xp.maximum(by_block(counted, form, xp), np.float32(LEAST_AMAX))


def _hidden(values: Any, how: Quantising, xp: Any) -> Any:
    """Return which blocks have a NaN among ``values``."""
    return by_block(xp.isnan(values).astype(xp.float32), how.form, xp) > 0


def _amax_ends(result: GemmResult, how: Quantising, xp: Any) -> tuple[Any, Any]:
    """Return the least and the greatest amax of blocks."""
    low, high, form = result.low, result.high, how.form
    least = xp.where((low <= 0) & (high >= 0), np.float32(0), xp.fmin(xp.abs(low), xp.abs(high)))
    return _amax(least, form, xp), _amax(xp.fmax(xp.abs(low), xp.abs(high)), form, xp)


def _candidates(scales: Any, how: Quantising, xp: Any) -> Any:
    """Return numbers of float32 that may be the amax of a scale, in order, on an axis in front."""
    middle = scales * np.float32(how.kind.largest)
    bits = xp.ascontiguousarray(_clipped(middle, xp).astype(xp.float32)).view(xp.int32)
    return xp.stack([(bits + i).view(xp.float32) for i in range(-NEIGHBOURS, NEIGHBOURS + 1)])


def _known_amax(values: Any, result: GemmResult, how: Quantising, xp: Any) -> Any:
    """Return which candidates are an amax that the result may have, and has this scale."""
    if how.form.scale != "fp32":
        return xp.ones((1, *values.shape), xp.bool_)
    amax = _candidates(values, how, xp)
    low, high = _amax_ends(result, how, xp)
    return (amax >= low) & (amax <= high) & (how.of_amax(amax, xp)[0] == values)


def _factors(bits: Any, result: GemmResult, how: Quantising, xp: Any) -> tuple[Any, Any]:
    """Return the least and the greatest factor of elements in blocks with these scales."""
    values = how.values(bits, xp)
    if how.form.scale != "fp32":
        inverse = ONE / how.of_tensor / values
        return inverse, inverse
    amax, known = _candidates(values, how, xp), _known_amax(values, result, how, xp)
    none = xp.logical_not(known.any(axis=0))  # a wrong scale: reported, and taken for right
    known[NEIGHBOURS] |= none
    _, factors = how.of_amax(xp.where(known, amax, np.float32(1)), xp)
    least = xp.where(known, factors, np.float32(np.inf)).min(axis=0)
    return least, xp.where(known, factors, np.float32(0)).max(axis=0)
