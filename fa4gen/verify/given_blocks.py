"""The lists of a case whose call names the blocks of keys that rows see: hard ones, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.masks.given_blocks import SEEN_BLOCKS
from fa4gen.verify.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.verify.sequences import Lengths

    Ints = NDArray[np.int64]

SHARES = (0.5, 0.0, 1.0, 0.25, 0.1)
"""Shares of the blocks that lists name, in turn: all rows of a tile with none, some with all."""
MANY, FEW = 64, 0.01
"""With more blocks than this, lists of the first head name few: words of 32 blocks with none."""
NO_BLOCKS = (-1, -(2**31), 2**31 - 1)
"""Entries that name no block, whatever the keys."""


def block_cases(plan: AttentionPlan) -> tuple[Case, ...]:
    """Return cases with several words of 32 blocks; none for a kernel without lists of a call."""
    if not plan.takes_blocks:
        return ()
    rows, n = 2 * plan.BM + 5, plan.BN
    return tuple(Case(f"blocks/{keys}", 1, 2, 1, rows, keys) for keys in (34 * n + 5, 66 * n))


def draw_blocks(
    plan: AttentionPlan,
    lengths: Lengths,
    query_heads: int,
    key_heads: int,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Return ``block_offsets`` and ``block_indices`` of a call, and SEEN_BLOCKS for its reference.

    Lists are out of order, and have blocks twice and entries that name none.
    """
    given = plan.config.given_blocks
    assert given is not None
    heads = query_heads if given.heads == "query" else key_heads
    rows = [-(-one // given.rows) for one, _ in lengths]
    keys = [-(-one // given.keys) for _, one in lengths]
    seen = np.zeros((len(lengths), heads, max(rows, default=0), max(keys, default=0)), np.bool_)
    lists: list[Ints] = []
    first = int(rng.integers(len(SHARES)))
    for sequence, head, row in _order(rows, heads, ragged=plan.is_ragged):
        blocks = keys[sequence]
        share = SHARES[(first + len(lists)) % len(SHARES)]
        if blocks > MANY and head == 0:
            share = FEW
        named = np.flatnonzero(rng.random(blocks) < share)
        if len(lists) % 3 == 0:  # the ends of the keys, which a wrong bound leaves out
            named = np.union1d(named, [0, blocks - 1])[: 2 * blocks]
        seen[sequence, head, row, named] = True
        lists.append(_as_written(named, blocks, rng))
    offsets = np.cumsum([0, *(len(one) for one in lists)])
    entries = np.concatenate([np.zeros(0, np.int64), *lists])
    return {
        "block_offsets": offsets.astype(np.int32),
        "block_indices": entries.astype(np.int32),
        SEEN_BLOCKS: seen,
    }


def _order(rows: list[int], heads: int, *, ragged: bool) -> Iterator[tuple[int, int, int]]:
    """Yield sequence, head and block of rows of each list, in the order of a call."""
    if ragged:
        for head in range(heads):
            yield from ((i, head, row) for i, count in enumerate(rows) for row in range(count))
        return
    for i, count in enumerate(rows):
        yield from ((i, head, row) for head in range(heads) for row in range(count))


def _as_written(named: Ints, blocks: int, rng: np.random.Generator) -> Ints:
    """Return a list that names these blocks: some twice, and entries for no block between."""
    again = named[rng.random(len(named)) < 0.3]
    none = rng.choice([*NO_BLOCKS, blocks], int(rng.integers(4)))
    return rng.permutation(np.concatenate([named, again, none]))
