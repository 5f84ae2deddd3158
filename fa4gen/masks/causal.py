"""Causal: a row sees the keys up to its diagonal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from fa4gen.masks.mask import Constant, Mask
from fa4gen.overriding import override


@dataclass(frozen=True)
class Causal(Mask):
    """A row sees the keys up to its diagonal."""

    name: str = field(default="causal", init=False)

    WORD: ClassVar[str] = "causal"
    MEANING: ClassVar[str] = "row r sees keys up to r + key_rows - query_rows"
    LAST: ClassVar[str | None] = "{position} + {window_right}"
    # As in a window: without + 0, ptxas orders instructions in another way than the timed kernels.
    FIXED: ClassVar[tuple[Constant, ...]] = (
        Constant("window_right", 0, "keys visible right of the diagonal"),
    )
    IN_ORDER: ClassVar[bool] = True
    ENDS_AT_QUERY: ClassVar[bool] = True

    @override
    def last(self, position: Any) -> Any:
        return position

    def pairs(self, rows: int) -> float:
        """Count half of them, by the usual convention."""
        return rows * rows / 2
