"""The names of a gated activation's numbers, and their places among the columns of B."""

from __future__ import annotations

import re
from typing import Any, Literal

GATED = ("gate", "up")
_NAMES = re.compile(rf"\b(?:{'|'.join(GATED)})\b", re.ASCII)
GateLayout = Literal["halves", "interleaved"]
"""halves: the first half of the columns of B is gate's and the other up's; interleaved: column 2 i
is gate's and column 2 i + 1 up's."""


def names_a_gate(activation: str) -> bool:
    """Return whether an activation is one over gate and up."""
    return _NAMES.search(activation) is not None


def halves(layout: GateLayout, columns: Any) -> tuple[Any, Any]:
    """Return the columns of gate and those of up."""
    if layout == "interleaved":
        return columns[..., ::2], columns[..., 1::2]
    half = columns.shape[-1] // 2
    return columns[..., :half], columns[..., half:]
