"""No residual: nothing is added to the product."""

from __future__ import annotations

from fa4gen.epilogues.residual import Residual

NONE = Residual(name="none", axes=(), meaning="absent", short="no residual")
