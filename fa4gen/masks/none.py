"""No mask: every row sees every key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fa4gen.masks.mask import Mask


@dataclass(frozen=True)
class NoMask(Mask):
    """Every row sees every key."""

    name: str = field(default="none", init=False)

    WORD: ClassVar[str] = "dense"

    @property
    def short(self) -> str:
        """See Mask."""
        return "dense"

    def pairs(self, rows: int) -> float:
        """See Mask."""
        return float(rows * rows)
