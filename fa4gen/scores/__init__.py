"""The score functions: what becomes of logits before the mask. A module each, and a row here.

Config, kernels, reference, bounds and vendored folders know a function by its entry alone; see
``score``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fa4gen.scores.score import EXPRESSION, Score
from fa4gen.scores.softcap import Softcap, SoftcapValue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fa4gen.expressions.tensors import Tensor

__all__ = [
    "SCORES",
    "Score",
    "Softcap",
    "SoftcapValue",
    "score_numbers",
    "score_of",
]

SCORES: tuple[type[Score], ...] = (Softcap,)
"""Each is the value of a config's key of its name."""


def score_of(values: Mapping[str, Any], tensors: Iterable[Tensor] = ()) -> Score:
    """Return the score function that a config's keys ask for; ValueError where they ask for two.

    ``tensors``: those that an expression may read.
    """
    asked = [kind(values[kind.name]) for kind in SCORES if values[kind.name] is not None]  # type: ignore[call-arg]
    if values.get(EXPRESSION) is not None:
        from fa4gen.scores.expression import (
            parse_score,  # few configs have one: others start faster
        )

        asked.append(parse_score(values[EXPRESSION], tensors))
    if len(asked) > 1:
        keys = [*(kind.name for kind in SCORES), EXPRESSION]
        names = " and ".join(key for key in keys if values.get(key) is not None)
        raise ValueError(f"{names} are functions of the same logits; leave one of them")
    return asked[0] if asked else Score()


def score_numbers() -> Mapping[str, str]:
    """Return names and notes of all functions' numbers."""
    return {name: note for kind in SCORES for name, note in kind.number_notes().items()}
