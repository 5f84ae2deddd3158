"""The definition of each mask, pair by pair, as simply as possible: the entries must agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from fa4gen.masks import MASKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from fa4gen.masks.mask import Mask

SEES: dict[str, Callable[[Any, int, int], bool]] = {
    "none": lambda mask, q, k: True,
    "causal": lambda mask, q, k: k <= q,
    "sliding_window": lambda mask, q, k: -mask.window_left <= k - q <= mask.window_right,
    "chunked": lambda mask, q, k: k <= q and k // mask.keys_per_chunk == q // mask.keys_per_chunk,
}
"""Whether a row at position q, which may be negative, sees key k."""
VALUES: dict[str, Any] = {
    "none": "none",
    "causal": "causal",
    "sliding_window": {"sliding_window": {"left": 100, "right": 30}},
    "chunked": {"chunked": 100},
}
"""The values of a config."""


def of_kind(name: str, numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Mask]:
    """Masks of a kind, with numbers from ``numbers``."""
    kind = next(kind for kind in MASKS if kind.name == name)
    return st.builds(kind, *(numbers for _ in kind.number_names()))


def drawn(numbers: st.SearchStrategy[int]) -> st.SearchStrategy[Mask]:
    """Masks of every kind, with numbers from ``numbers``."""
    return st.one_of(*(of_kind(kind.name, numbers) for kind in MASKS))


def sees(mask: Mask, row: int, key: int, rows: int, keys: int) -> bool:
    """Whether the row sees the key; the last row and the last key meet."""
    return SEES[mask.name](mask, row + keys - rows, key)
