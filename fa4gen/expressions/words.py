"""Words and limits of expressions: all that a config without one needs of them."""

from __future__ import annotations

MAX_LENGTH = 400
"""Characters of an expression."""
FUNCTIONS = {
    "min": "minimum",
    "max": "maximum",
    "abs": "absolute",
    "where": "where",
    "bit": "bit",
}
BITS = 32
"""The bits of a whole number; ``bit(number, index)`` takes an index outside for the nearest one."""
OF_FLOATS = ("exp2", "log2", "tanh")
"""Functions of languages with floats."""
OF_ACTIVATIONS = ("exp", "exp2", "log", "log2", "tanh", "erf", "sqrt")
"""Functions of activations, which C has with an f at the end of the name."""
OF_GATES = (*OF_ACTIVATIONS, "sigmoid")
"""Functions of gated activations."""
SYNONYMS = {"swish": "silu", "SiLU": "silu", "GELU": "gelu", "ReLU": "relu", "fmax": "max"}
"""Names of functions elsewhere."""
FLOOR_DIVIDE, FLOOR_REMAINDER = "floor_divide", "floor_remainder"
"""Functions of a kernel: division rounds down, as in Python, and not toward 0, as in C."""


class ExpressionError(ValueError):
    """An error in a text, and its place."""

    def __init__(self, message: str, character: int | None = None) -> None:
        super().__init__(message)
        self.character = character
        """From 1 on; None for the text as a whole."""
