"""The interface of score functions: logits pass through one, each by itself, before the mask.

A kernel multiplies the products Q.K by a factor, computes the function, and multiplies its results
by a unit and log2(e), which the exponent of the softmax does in passing. Without a function the
factor is 1 and the unit is the softmax scale.

An entry says it in Python for the reference, in CUDA for kernels, and in C for the self-test of a
vendored folder. Its key in a config is its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.expressions.places import Places

EXPRESSION = "score"
"""The config's key of functions that are written there; see ``expression``."""


@dataclass(frozen=True)
class Score:
    """A function of logits; this one leaves them as they are.

    Fields after the name are the function's numbers, floats above 0; a constant of kernels each.
    """

    name: str = field(default="none", init=False)
    """The config's key."""

    FUNCTION: ClassVar[str] = ""
    """The function's name in kernels; empty where there is nothing to compute."""
    COMMENT: ClassVar[tuple[str, ...]] = ()
    """Lines above the function."""
    BODY: ClassVar[tuple[str, ...]] = ()
    """CUDA that replaces ``{score}``, a product Q.K, with the function's result; it may read the
    factor by its name."""
    FACTOR: ClassVar[str] = ""
    """Name of the factor."""
    FACTOR_NOTE: ClassVar[str] = ""
    FACTOR_VALUE: ClassVar[str] = ""
    """CUDA of the factor, with ``{scale}`` for the softmax scale."""
    UNIT: ClassVar[str] = ""
    """CUDA of the unit, with ``{scale}`` for the softmax scale."""
    IS_EXPRESSION: ClassVar[bool] = False
    """Kernels compute it of indices, too; see ``designs.common.score_text``."""
    C_EXACT: ClassVar[str] = ""
    """C of the self-test: the function of the double ``score``, with the numbers by name."""
    C_ROUNDED: ClassVar[str] = ""
    """C: the function of the float ``rounded``, times log2(e); ``score_scale`` is the scale."""
    C_ERROR: ClassVar[str] = ""
    """C of ``error``."""

    def exact(self, logits: Any, xp: Any, places: Places | None = None) -> Any:
        """Return the function of ``logits``, products times the softmax scale, in float64.

        ``places``: where they are; see ``expressions.places``.
        """
        del xp, places
        return logits

    def rounded(
        self, products: Any, scale: float, xp: Any, places: Places | None = None
    ) -> tuple[Any, float]:
        """Return the kernel's result for float32 products, and the unit that multiplies it."""
        del xp, places
        return products, scale

    def errors(self, logits: Any, error: Any, xp: Any, places: Places) -> Any:
        """Return the errors of a kernel's results where its logits are off by ``error``."""
        del xp, places
        return error + self.error + 0 * logits

    @property
    def reach(self) -> int:
        """The part of 32 bits above rows and keys that its numbers need, as for a mask."""
        return 0

    @property
    def only_adds(self) -> bool:
        """Whether results grow as logits do: nothing is computed, or only added."""
        return not self.FUNCTION

    @property
    def words(self) -> str:
        """The function in words, for summaries; empty for none."""
        return ""

    @property
    def tensors_read(self) -> frozenset[str]:
        """Names of the declared tensors that it reads."""
        return frozenset()

    @property
    def error(self) -> float:
        """The most that computing it in float32 adds to a logit's error.

        Its slope is at most 1: it enlarges no error that a logit has.
        """
        return 0.0

    @classmethod
    def number_notes(cls) -> Mapping[str, str]:
        """Return name and note of each number."""
        return {row.name: row.metadata["note"] for row in fields(cls) if row.name != "name"}

    def numbers(self) -> Mapping[str, float]:
        """Return the function's numbers by name."""
        return {name: getattr(self, name) for name in self.number_notes()}

    def factor(self, scale: str) -> str:
        """Return CUDA of the factor for a softmax scale."""
        return self.FACTOR_VALUE.format(scale=scale)

    def unit(self, scale: str) -> str:
        """Return CUDA of the unit for a softmax scale."""
        return self.UNIT.format(scale=scale)

    def body(self, score: str) -> tuple[str, ...]:
        """Return CUDA that replaces ``score`` with the function's result."""
        return tuple(line.format(score=score) for line in self.BODY)

    @classmethod
    def in_c(cls, text: str, owner: str) -> str:
        """Return C_EXACT and its like with the numbers as members of ``owner``."""
        return text.format(**{name: f"{owner}{name}" for name in cls.number_notes()})
