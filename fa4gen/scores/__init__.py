"""The score functions: maps of logits before the mask. A module each, and a row here.

Config, kernels, reference, bounds and vendored folders know a function by its entry alone; see
``score``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fa4gen.expressions.words import MAX_LENGTH
from fa4gen.scores.score import EXPRESSION, Score
from fa4gen.scores.softcap import Softcap, SoftcapValue
from fa4gen.strict import Field, Strict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.expressions.tensors import Tensor

__all__ = [
    "SCORES",
    "RelativeBiasValue",
    "Score",
    "ScoreValue",
    "Softcap",
    "SoftcapValue",
    "ready_name",
    "score_numbers",
    "score_of",
]

SCORES: tuple[type[Score], ...] = (Softcap,)
"""Each is the value of a config's key of its name."""


class RelativeBiasValue(Strict):
    """A bias of each head for each distance up to a number of keys to either side."""

    relative_bias: Annotated[int, Field(ge=1, le=2**20)]


READY_WORDS = ("alibi",)
"""Words for functions that read a tensor; see ``expressions.ready``."""
ScoreValue = Literal["alibi"] | RelativeBiasValue | Annotated[str, Field(max_length=MAX_LENGTH)]
"""A score in a config: a word, a mapping with one key, or an expression."""


def ready_name(value: ScoreValue | None) -> tuple[str, int] | None:
    """Return the name and the number of a score that stands for an expression; else None."""
    if isinstance(value, RelativeBiasValue):
        return "relative_bias", value.relative_bias
    return (str(value), 0) if value in READY_WORDS else None


def score_text(value: ScoreValue | None) -> str | None:
    """Return the expression of a config's value."""
    named = ready_name(value)
    if named is None:
        return None if value is None else str(value)
    from fa4gen.expressions.ready import ready

    return ready(EXPRESSION, named[0]).expression(named[1])


def score_of(values: Mapping[str, Any], tensors: Iterable[Tensor] = ()) -> Score:
    """Return the score function that a config's keys ask for; ValueError where they ask for two.

    ``tensors``: those that an expression may read.
    """
    asked = [kind(values[kind.name]) for kind in SCORES if values[kind.name] is not None]  # type: ignore[call-arg]
    written = score_text(values.get(EXPRESSION))
    if written is not None:
        from fa4gen.scores.expression import (
            parse_score,  # few configs have one: others start faster
        )

        asked.append(parse_score(written, tensors))
    if len(asked) > 1:
        keys = [*(kind.name for kind in SCORES), EXPRESSION]
        names = " and ".join(key for key in keys if values.get(key) is not None)
        raise ValueError(f"{names} are functions of the same logits; leave one of them")
    return asked[0] if asked else Score()


def score_numbers() -> Mapping[str, str]:
    """Return names and notes of all functions' numbers."""
    return {name: note for kind in SCORES for name, note in kind.number_notes().items()}
