"""The kinds of residual: forms of C in alpha * A . B + beta * C. A module each, and a row here.

Config, kernels, argument checks, cases, reference, benchmarks and vendored folders know a kind by
its entry alone; see ``residual``.
"""

from __future__ import annotations

from typing import Annotated, Literal

from fa4gen.epilogues.column import COLUMN
from fa4gen.epilogues.matrix import MATRIX
from fa4gen.epilogues.none import NONE
from fa4gen.epilogues.residual import Residual
from fa4gen.epilogues.row import ROW
from fa4gen.strict import Field

__all__ = ["RESIDUALS", "Residual", "ResidualValue", "residual_of"]

RESIDUALS: tuple[Residual, ...] = (NONE, MATRIX, ROW, COLUMN)
"""In the order of their numbers in a vendored folder: a new one goes last."""
ResidualValue = Annotated[
    Literal["none", "matrix", "row", "column"],
    Field(description=f"What C is. {'; '.join(f'{r.name}: {r.meaning}' for r in RESIDUALS)}."),
]
"""A residual in a config."""
_BY_NAME = {residual.name: residual for residual in RESIDUALS}


def residual_of(name: str) -> Residual:
    """Return the kind of this name; KeyError for others."""
    return _BY_NAME[name]
