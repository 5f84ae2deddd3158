"""The operations as text of CUDA C++: those on whole numbers as ``c_text`` has them, and floats.

The compiler may join a product and a sum to one operation: results differ from NumPy's float32 by
roundings, which ``rounding_errors`` bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fa4gen.expressions import c_text
from fa4gen.expressions.c_text import C, Rank

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FUNCTIONS = {
    "real_divide": "__fdividef",
    "real_minimum": "fminf",
    "real_maximum": "fmaxf",
    "real_absolute": "fabsf",
    "exp2": "exp2_approx",
    "log2": "log2_approx",
    "tanh": "tanh_by_exp2",
}
"""CUDA's, and those of the templates of instructions."""


def float_text(value: float) -> str:
    """Return a literal that float32 reads back: 0.1 -> 0.1f, 3 -> 3.f."""
    text = repr(float(value))
    return f"{text.removesuffix('0') if text.endswith('.0') else text}f"


@dataclass(frozen=True)
class CudaText:
    """A namespace of functions of ``C``."""

    functions: ClassVar[Mapping[str, str]] = FUNCTIONS

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function of CUDA of the same meaning, or ``c_text``'s."""
        if name in self.functions:
            function = self.functions[name]
            return lambda *arguments: C(f"{function}({', '.join(x.text for x in arguments)})")
        found: Callable[..., Any] = getattr(c_text, name.removeprefix("real_"))
        return found

    def real(self, value: float) -> C:
        """Return a float."""
        return C(float_text(value), Rank.ATOM if value >= 0 else Rank.SIGN)

    def to_real(self, one: C) -> C:
        """Return a whole number as a float."""
        return C(f"static_cast<float>({one.text})")
