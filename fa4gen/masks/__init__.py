"""The masks: which keys a query row sees. A module each, and a row here.

Config, kernels, schedule, reference, cases, benchmarks and vendored folders use only a mask's
entry; see ``mask``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fa4gen.expressions.words import MAX_LENGTH
from fa4gen.masks.causal import Causal
from fa4gen.masks.chunked import Chunked, ChunkedValue
from fa4gen.masks.mask import MAX_REACH
from fa4gen.masks.none import NoMask
from fa4gen.masks.sliding_window import SlidingWindow, SlidingWindowValue
from fa4gen.strict import Field, Read, Strict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.masks.expression import ExpressionMask
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
    "ready_name",
]

MASKS: tuple[type[Mask], ...] = (NoMask, Causal, SlidingWindow, Chunked)
"""Those with a name, in the order of their numbers in a vendored folder: a new one goes last."""


def _parsed(condition: str) -> ExpressionMask:
    from fa4gen.masks.expression import parse_mask  # most masks have a name, and start faster

    return parse_mask(condition)


def _tidied(condition: str) -> str:
    return _parsed(condition).name


class DilatedValue(Strict):
    """The keys at multiples of a distance back from a row's own key, which it sees, too."""

    dilated: Annotated[int, Field(ge=2, le=MAX_REACH)]

    @property
    def ready(self) -> tuple[str, int]:
        """The name of a ready expression, and its number; see ``expressions.ready``."""
        return "dilated", self.dilated


READY_WORDS = ("documents", "prefix", "tree")
"""Words for masks that read a tensor; see ``expressions.ready``."""
NOT_A_WORD = r"[^A-Za-z0-9_]"
Condition = Annotated[
    str,
    Field(
        pattern=NOT_A_WORD,
        max_length=MAX_LENGTH,
        description='a condition on query and key, such as "key <= query or key < 256"',
    ),
    Read(_tidied),
]
MaskValue = (
    Literal["none", "causal", "documents", "prefix", "tree"]
    | SlidingWindowValue
    | ChunkedValue
    | DilatedValue
    | Condition
)
"""A mask in a config: a word, a mapping with one key, or a condition on query and key."""


def mask_of(value: MaskValue) -> Mask:
    """Return the mask of a config's value; a condition that means a named mask is that one."""
    if value in ("none", "causal"):
        return {"none": NoMask(), "causal": Causal()}[str(value)]
    if not isinstance(value, str | DilatedValue):
        return value.mask()
    named = ready_name(value)
    if named is not None:
        from fa4gen.expressions.ready import ready

        return _parsed(ready("mask", named[0]).expression(named[1]))
    from fa4gen.masks.named import named_mask

    return named_mask(_parsed(str(value)))


def ready_name(value: MaskValue) -> tuple[str, int] | None:
    """Return the name and the number of a mask that stands for an expression; else None."""
    if isinstance(value, DilatedValue):
        return value.ready
    return (str(value), 0) if value in READY_WORDS else None


def mask_numbers() -> tuple[str, ...]:
    """Return the names of all masks' numbers."""
    return tuple(name for kind in MASKS for name in kind.number_names())


def mask_in(facts: Mapping[str, Any]) -> Mask:
    """Return the mask of recorded results, which hold its name as ``mask`` and its numbers."""
    kind = next((kind for kind in MASKS if kind.name == facts["mask"]), None)
    if kind is None:
        return _parsed(facts["mask"])
    return kind(**{name: facts[name] for name in kind.number_names()})
