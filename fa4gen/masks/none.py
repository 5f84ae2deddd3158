"""No mask: every row sees every key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from fa4gen.masks.mask import Mask
from fa4gen.overriding import override


@dataclass(frozen=True)
class NoMask(Mask):
    """Every row sees every key."""

    name: str = field(default="none", init=False)

    WORD: ClassVar[str] = "dense"

    @property
    @override
    def short(self) -> str:
        return "dense"

    @override
    def pairs(self, rows: int) -> float:
        return float(rows * rows)
