"""The forms of block scales: which elements share a scale, and the types of both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from fa4gen.errors import ArgumentError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ScaleForm:
    """A block of elements with one scale; ``element * scale`` is the number that was quantised."""

    name: str
    rows: int
    """Rows of a block."""
    columns: int
    """Consecutive elements of a row in a block, along k."""
    element: str
    """The type of the elements: "fp8_e4m3", "fp8_e5m2" or "fp4_e2m1"."""
    scale: str
    """The type of a scale: "fp32", "ue8m0", a power of two, or "ue4m3"."""
    has_tensor_scale: bool = False
    """Whether a float32 for the whole tensor multiplies, too."""


FORMS: Mapping[str, ScaleForm] = {
    form.name: form
    for form in (
        ScaleForm("1x128", 1, 128, "fp8_e4m3", "fp32"),
        ScaleForm("128x128", 128, 128, "fp8_e4m3", "fp32"),
        ScaleForm("mxfp8", 1, 32, "fp8_e4m3", "ue8m0"),
        ScaleForm("mxfp4", 1, 32, "fp4_e2m1", "ue8m0"),
        ScaleForm("nvfp4", 1, 16, "fp4_e2m1", "ue4m3", has_tensor_scale=True),
    )
}
_OTHER_ELEMENTS = dict.fromkeys(("1x128", "128x128", "mxfp8"), ("fp8_e4m3", "fp8_e5m2"))
_OTHER_SCALES = dict.fromkeys(("1x128", "128x128"), ("fp32", "ue8m0"))


def form_of(name: str, *, element: str | None = None, scale: str | None = None) -> ScaleForm:
    """Return the form called ``name``, with other types of elements or scales if given.

    Raises ArgumentError for names and types that the form does not have.
    """
    form = FORMS.get(name)
    if form is None:
        raise _unknown("form", name, tuple(FORMS))
    if element is not None:
        _check(f"element of {name}", element, _OTHER_ELEMENTS.get(name, (form.element,)))
        form = replace(form, element=element)
    if scale is not None:
        _check(f"scale of {name}", scale, _OTHER_SCALES.get(name, (form.scale,)))
        form = replace(form, scale=scale)
    return form


def _check(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise _unknown(what, given, known)


def _unknown(what: str, given: str, known: tuple[str, ...]) -> ArgumentError:
    nearest = get_close_matches(given, known, 1, 0.3)
    remedy = f"The nearest is {nearest[0]}." if nearest and len(known) > 1 else ""
    return ArgumentError(Problem(f"{what}: expected {' or '.join(known)}, got {given!r}", remedy))
