"""The mask's division of a case's scores: full, partial and empty blocks of keys by tile.

A kernel has separate code for each: no mask, the mask, and blocks that it does not load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.verify.cases import Case


def score_tiles(plan: AttentionPlan, case: Case) -> dict[str, int]:
    """Count the blocks of BN keys by tile of BM query rows, over all tiles of all batches.

    The last block is partial where the keys end inside it.
    """
    counts = {"full": 0, "partial": 0, "empty": 0}
    for rows, keys in case.sequences:
        _count(plan, rows, keys, counts)
    return {kind: case.query_heads // plan.tile_heads * count for kind, count in counts.items()}


def _count(plan: AttentionPlan, rows: int, keys: int, counts: dict[str, int]) -> None:
    n = plan.BN
    for first_row in range(0, rows, plan.tile_queries):
        last_row = min(first_row + plan.tile_queries, rows) - 1
        # keys that a row sees, of the first and of the last row: [low, high]
        low_first, high_first = _seen(plan, first_row, rows, keys)
        low_last, high_last = _seen(plan, last_row, rows, keys)
        for start in range(0, keys, n):
            end = start + n - 1
            if (
                low_last <= start
                and end <= high_first
                and plan.mask.sees_all(
                    range(first_row + keys - rows, last_row + 1 + keys - rows),
                    range(start, end + 1),
                )
            ):
                counts["full"] += 1
            elif start > high_last or end < low_first:
                counts["empty"] += 1
            else:
                counts["partial"] += 1


def _seen(plan: AttentionPlan, row: int, rows: int, keys: int) -> tuple[int, int]:
    """Return the first and last key that a row sees; the last row's diagonal is the last key."""
    first, end = plan.mask.bounds(row + keys - rows, keys)
    return max(0, first), min(keys, end) - 1
