"""The masks: which keys a query row sees. A module each, and a row here.

Config, kernels, schedule, reference, cases, benchmarks and vendored folders use only a mask's
entry; see ``mask``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Tag

from fa4gen.masks.causal import Causal
from fa4gen.masks.chunked import Chunked, ChunkedValue
from fa4gen.masks.none import NoMask
from fa4gen.masks.sliding_window import SlidingWindow, SlidingWindowValue
from fa4gen.strict import WORD, branch_by_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.masks.mask import Mask

__all__ = [
    "MASKS",
    "Causal",
    "Chunked",
    "MaskValue",
    "NoMask",
    "SlidingWindow",
    "mask_in",
    "mask_numbers",
    "mask_of",
]

MASKS: tuple[type[Mask], ...] = (NoMask, Causal, SlidingWindow, Chunked)
"""In the order of their numbers in a vendored folder: a new one goes last."""
MaskValue = Annotated[
    Annotated[Literal["none", "causal"], Tag(WORD)]
    | Annotated[SlidingWindowValue, Tag("sliding_window")]
    | Annotated[ChunkedValue, Tag("chunked")],
    Discriminator(branch_by_key("sliding_window", "chunked")),
]
"""What a config says: a word, or a mapping with one key."""


def mask_of(value: MaskValue) -> Mask:
    """Return the mask of a config's value."""
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
