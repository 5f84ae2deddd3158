"""The masks: which keys a query row sees. A module each, and a row here.

Config, kernels, schedule, reference, cases, benchmarks and vendored folders know a mask by its
entry alone; see ``mask``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from fa4gen.masks.causal import Causal
from fa4gen.masks.none import NoMask
from fa4gen.masks.sliding_window import SlidingWindow, SlidingWindowValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.masks.mask import Mask

__all__ = [
    "MASKS",
    "Causal",
    "MaskValue",
    "NoMask",
    "SlidingWindow",
    "mask_in",
    "mask_numbers",
    "mask_of",
]

MASKS: tuple[type[Mask], ...] = (NoMask, Causal, SlidingWindow)
"""In the order of their numbers in a vendored folder: a new one goes last."""
MaskValue = Literal["none", "causal"] | SlidingWindowValue
"""What a config says."""


def mask_of(value: MaskValue) -> Mask:
    """Return the mask that a config's value means."""
    if not isinstance(value, str):
        return value.mask()
    return {"none": NoMask(), "causal": Causal()}[value]


def mask_numbers() -> tuple[str, ...]:
    """Return the names of all masks' numbers."""
    return tuple(name for kind in MASKS for name in kind.number_names())


def mask_in(facts: Mapping[str, Any]) -> Mask:
    """Return the mask of recorded results, which hold its name as ``mask`` and its numbers."""
    kind = next(kind for kind in MASKS if kind.name == facts["mask"])
    return kind(**{name: facts[name] for name in kind.number_names()})
