"""Memory that no kernel may depend on: keys that no row sees, values in blocks beyond its ends.

Their numbers are NaN in the memory of a case, and entries of a page table for pages of such keys
are outside the cache. The queries of a head may be NaN as well, on which no other head may depend.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from fa4gen.expressions.places import Places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.decode_model import SharedKeysPlan
    from fa4gen.verify.inputs import Inputs
    from fa4gen.verify.reference import AttentionResult
    from fa4gen.verify.sequences import Lengths

    Bools = NDArray[np.bool_]

NO_PAGES = (-1, np.iinfo(np.int32).max, np.iinfo(np.int32).min)
"""Entries of a page table outside any cache; the first one past the cache is another."""
MOST_SCORES = 1 << 22
"""The most scores of a sequence: with more, keys count as seen from the first to the last one that
any row sees."""


def keys_between_ends(plan: AttentionPlan, inputs: Inputs, rows: int, keys: int) -> Bools:
    """Return the keys from the first to the last that any row's ends allow, like ``seen_keys``.

    The mask's test between the ends is left out, as in a kernel that walks blocks.
    """
    first, end = _ends(plan, rows, keys)
    between = np.zeros((inputs.key.shape[2], keys), np.bool_)
    sees = np.flatnonzero(np.minimum(end, keys) > np.maximum(first, 0))
    if sees.size and inputs.query.shape[2]:
        between[:, max(0, first[sees].min()) : end[sees].max()] = True
    return between


def seen_keys(plan: AttentionPlan, inputs: Inputs, sequence: int, rows: int, keys: int) -> Bools:
    """Return the keys that any row sees, as booleans (key heads, keys)."""
    heads, key_heads = inputs.query.shape[2], inputs.key.shape[2]
    seen = keys_between_ends(plan, inputs, rows, keys)
    if not seen.any() or rows * keys * heads > MOST_SCORES:
        return seen
    seen[:] = False
    position = np.arange(rows)[:, None] + (keys - rows)
    first, end = _ends(plan, rows, keys)
    columns = np.arange(keys)[None]
    between = (first <= columns) & (columns < end)
    for head in range(heads):
        key_head = head * key_heads // heads
        row = np.arange(rows)[:, None]
        places = Places(position, columns, row, head, key_head, sequence, inputs.tensors)
        within = plan.seen_mask.sees_at(places, np)
        seen[key_head] |= (between & within).any(axis=0)
    return seen


def _ends(plan: AttentionPlan, rows: int, keys: int) -> tuple[Any, Any]:
    """Return the first key of each row and one past its last, (rows, 1)."""
    position = np.arange(rows)[:, None] + (keys - rows)
    first, end = (0 * position + one for one in plan.mask.bounds(position, keys))
    return first, end


def read_keys(plan: AttentionPlan, seen: Bools) -> Bools:
    """Return the keys of whole blocks that have one of ``seen``.

    Blocks between the first and the last of these count, unless lists name each block.
    """
    step = cast("SharedKeysPlan", plan).unit_keys if plan.splits_keys else plan.BN
    read = np.zeros_like(seen)
    for head, own in enumerate(seen):
        blocks = np.unique(np.flatnonzero(own) // step)
        if blocks.size and not plan.leaves_blocks_out:
            blocks = np.arange(blocks[0], blocks[-1] + 1)
        for block in blocks:
            read[head, block * step : (block + 1) * step] = True
    return read


def with_nan(plan: AttentionPlan, inputs: Inputs, lengths: Lengths) -> tuple[Any, Any]:
    """Return keys and values with NaN where no kernel may depend on them."""
    key, value = inputs.key.copy(), inputs.value.copy()
    for sequence, place, rows, keys in _sequences(plan, lengths):
        seen = seen_keys(plan, inputs, sequence, rows, keys)
        walked = seen if plan.leaves_blocks_out else keys_between_ends(plan, inputs, rows, keys)
        read = read_keys(plan, walked)
        for array, kept in ((key, read if plan.values_in_keys else seen), (value, read)):
            array[place][~kept.T] = np.nan
    return key, value


def with_nan_head(query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return queries (batch, rows, heads, depth) with NaN in the first head of the first batch."""
    query = query.copy()
    query[:1, :, :1] = np.nan
    return query


def without_nan_head(got: AttentionResult, exact: AttentionResult, xp: Any) -> AttentionResult:
    """Return a kernel's results with right ones in place of those of that head."""
    out = xp.array(got.out)
    out[:1, :, :1] = (exact.out if exact.low is None else exact.low)[:1, :, :1]
    got = replace(got, out=out)
    if got.max_logits is not None:
        max_logits = xp.array(got.max_logits)
        max_logits[:1] = exact.max_logits.exact[:1]
        got = replace(got, max_logits=max_logits)
    if got.lse is None:
        return got
    lse = xp.array(got.lse)
    lse[:1, :1] = exact.lse[:1, :1]
    return replace(got, lse=lse)


def without_pages(
    plan: AttentionPlan,
    tables: Mapping[str, NDArray[np.int32]],
    inputs: Inputs,
    lengths: Lengths,
    pages: int,
) -> dict[str, NDArray[np.int32]]:
    """Return the tables of a call from which pages that no row sees have been evicted.

    ``pages``: of the cache.
    """
    if not plan.is_paged:
        return dict(tables)
    table = tables["page_table"].copy()
    outside = np.array([*NO_PAGES, pages], np.int64).astype(np.int32)
    for sequence, _, rows, keys in _sequences(plan, lengths):
        seen = np.flatnonzero(seen_keys(plan, inputs, sequence, rows, keys).any(axis=0))
        evicted = np.setdiff1d(
            np.arange(plan.key_source.pages(keys)), seen // plan.key_source.page_rows
        )
        kinds = np.roll(outside, sequence)[::-1]  # those just before a page that is seen differ
        table[sequence, evicted[::-1]] = np.resize(kinds, len(evicted))
    return {**tables, "page_table": table}


def _sequences(
    plan: AttentionPlan, lengths: Lengths
) -> Iterator[tuple[int, tuple[int, slice], int, int]]:
    """Yield each sequence, its keys among the drawn ones, its query rows and its keys."""
    begin = 0
    for number, (rows, keys) in enumerate(lengths):
        if plan.key_source.clipped:
            yield number, (0, slice(begin, begin + keys)), rows, keys
        else:
            yield number, (number, slice(0, keys)), rows, keys
        begin += keys
