"""Sliding window: a row sees a number of keys left and right of its diagonal, and the one on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from fa4gen.masks.mask import MAX_REACH, Mask, parameter
from fa4gen.overriding import override
from fa4gen.strict import Field, Strict


class WindowExtent(Strict):
    """The keys that a query row sees on each side of its diagonal, the diagonal not counted."""

    left: Annotated[int, Field(ge=0, le=MAX_REACH)]
    right: Annotated[int, Field(ge=0, le=MAX_REACH)]


class SlidingWindowValue(Strict):
    """A band around the diagonal, which ends at the bottom right corner like ``causal``.

    A number W means the W most recent keys, the row's own key included;
    ``{left: L, right: R}`` means L keys before the diagonal, R after it, and itself.
    """

    sliding_window: Annotated[int, Field(ge=1, le=MAX_REACH)] | WindowExtent

    def mask(self) -> SlidingWindow:
        """Return the mask."""
        if isinstance(self.sliding_window, int):
            return SlidingWindow(self.sliding_window - 1, 0)
        return SlidingWindow(self.sliding_window.left, self.sliding_window.right)


@dataclass(frozen=True)
class SlidingWindow(Mask):
    """A row sees the keys at most so far left and right of its diagonal."""

    name: str = field(default="sliding_window", init=False)
    window_left: int = parameter("keys visible left of the diagonal")
    window_right: int = parameter("keys visible right of the diagonal")

    WORD: ClassVar[str] = "window"
    MEANING: ClassVar[str] = "keys at most window_left before that one, window_right past it"
    FIRST: ClassVar[str | None] = "{position} - {window_left}"
    LAST: ClassVar[str | None] = "{position} + {window_right}"

    @property
    @override
    def ENDS_AT_QUERY(self) -> bool:  # type: ignore[override]  # noqa: N802
        return self.window_right == 0

    @override
    def first(self, position: Any) -> Any:
        return position - self.window_left

    @override
    def last(self, position: Any) -> Any:
        return position + self.window_right

    @property
    @override
    def words(self) -> str:
        return f"sliding window, {self.window_left} keys left and {self.window_right} right"

    @property
    @override
    def short(self) -> str:
        if self.window_right == 0:
            return f"window {self.window_left + 1}"
        return f"window {self.window_left}+1+{self.window_right}"

    @property
    @override
    def reach(self) -> int:
        return max(self.window_left, self.window_right)

    @property
    @override
    def span(self) -> int:
        return self.window_left + 1 + self.window_right

    @override
    def pairs(self, rows: int) -> float:
        def on_one_side(width: int) -> int:
            width = min(width, rows - 1)
            return width * rows - width * (width + 1) // 2

        return float(on_one_side(self.window_left) + on_one_side(self.window_right) + rows)
