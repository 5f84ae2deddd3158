"""Cases whose CTAs use every slot of every ring of the plan at least three times.

A wrong parity or a missing wait may show only when a slot is used for the second or third time. So
all tiles of such a case are given to a single CTA, or cluster of CTAs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fa4gen.verify.cases import Case
from fa4gen.verify.gemm.case import GemmCase
from fa4gen.verify.score_tiles import score_tiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.gemm_model import GemmPlan
    from fa4gen.verify.exercise import Wanted

USES = 3
"""The uses of every slot."""
FAR = 90
"""Keys after which a logit that is less by their number leaves no probability in float32."""
MOST_BLOCKS = 100
"""The most blocks of a further case: a window may show more than can be emulated."""
TILES = 6
"""Per CTA: three uses of both slots of the rings that are used once per tile."""


def attention_rings(plan: AttentionPlan, times: int = 1) -> tuple[Case, ...]:
    """Return the cases for the rings of an attention kernel, with ``times`` the uses of each slot.

    One is a single tile with so many blocks of keys that their rings wrap within it: between tiles
    a loader waits for slots of the queries, too, which hides a missing wait for keys. With a window
    that shows fewer blocks it is as few tiles as suffice. The other case has many tiles, for rings
    that are used once per tile.
    """
    uses, tiles = USES * times, TILES * times
    blocks = max((-(-uses * slots // a_block) for slots, a_block in loads(plan)), default=uses)
    for row in plan.barriers:
        if row.name == "buffers_free":  # each warpgroup has half of them, from the second block on
            blocks = max(blocks, uses * row.slots // 2 + 1)
    rows = plan.launch.cluster // plan.ctas_per_tile * plan.tile_queries - 3
    shown = blocks
    if plan.mask.span is not None:
        # the other blocks are masked for all rows of a tile, and not loaded
        shown = max(1, min(blocks, (plan.mask.span + plan.tile_queries) // plan.BN))
    long = _rings(plan, -(-blocks // shown), rows, shown * plan.BN - 5)
    if long.query_heads >= tiles:
        return (long,)
    return (long, _rings(plan, tiles, rows, plan.BN - 5))


def _rings(plan: AttentionPlan, heads: int, rows: int, keys: int) -> Case:
    return Case(
        f"rings/{heads}x{keys}", 1, heads, heads if heads % 2 else heads // 2, rows, keys,
        data="rising_and_falling", multiprocessors=plan.launch.cluster,
    )  # fmt: skip


def gemm_rings(plan: GemmPlan, times: int = 1) -> GemmCase:
    """Return the case for the rings of a matrix product; ``times`` as many uses of each slot."""
    tiles = TILES * times * plan.ctas_per_tile  # of which each CTA writes a part
    blocks = plan.ctas_per_tile * -(-USES * times * plan.num_stages // tiles)
    k = (blocks - 1) * plan.BK + 8
    return GemmCase(
        f"rings/{tiles}x{k}",
        plan.tile_rows + 5,
        (tiles // 2 - 1) * plan.tile_columns + 9,
        k,
        data="counting",
        multiprocessors=plan.launch.cluster,
    )


def attention_further(plan: AttentionPlan, wanted: Wanted) -> tuple[Case, ...]:
    """Return cases to try for the goals ``wanted``."""
    m, n = plan.tile_queries, plan.BN
    cases = list(attention_rings(plan, times=2)) if wanted.rings else []
    if wanted.rescales_taken:  # from the last block of keys to the first the maxima grow
        cases.append(Case("further/growing", 1, 1, 1, 5, 4 * n, data="falling"))
    if wanted.rescales_skipped:
        cases.append(Case("further/growing_little", 1, 1, 1, 5, 4 * n, data="falling_slowly"))
    if wanted.several_tiles:
        cases.append(_rings(plan, TILES, 3, n - 5))
    if wanted.single_tile:
        cases.append(Case("further/one_tile", 1, 1, 1, 3, n + 5))
    if wanted.branches:
        if plan.mask.LAST:
            # of three tiles only the last rows see a key, and one CTA takes all: tiles and parts of
            # tiles without work, after others
            few = Case("further/few_seen", 1, 2, 1, 3 * m, m + m // 4)
            cases.append(replace(few, multiprocessors=plan.cta_group))
        # blocks before, inside and after the visible keys, for rows of two tiles
        keys = min(plan.mask.span or 0, 4 * n) + 3 * n
        cases.append(Case("further/long", 1, 1, 1, m + 1, keys, data="falling"))
        cases += [one for one in _at_first_keys(plan) if _blocks(plan, one) <= MOST_BLOCKS]
        if any(one.dtype != "fp32" for one in plan.declared_tensors):
            # by masks of blocks or bits a CTA has a tile that sees keys, then one that sees none
            first = Case("further/first", 1, plan.tile_heads, 1, 2 * m, 2 * n + 9)
            cases.append(replace(first, tensors="first", multiprocessors=plan.launch.cluster))
        if any(one.dtype == "fp32" for one in plan.declared_tensors):
            # A slope of 1: key 0 has a logit of 200 less its distance, in a block of which nothing
            # would count without it, and which is the first that all of 64 rows see.
            heads = plan.tile_heads
            far = Case("further/far", 1, heads, 1, 64, n + FAR + 64, data="dominant_first")
            cases.append(replace(far, tensors="wild"))
    return tuple(cases)


def _at_first_keys(plan: AttentionPlan) -> Iterator[Case]:
    """Yield cases for blocks in which the keys that rows see begin: the last ones of a tile.

    Rows are rescaled there, too: where logits differ by much, and where the first key, which only
    the first of the rows see, has all of the weight. The second is for scores with a limit.
    """
    span = plan.mask.span
    if span is None or not plan.mask.has_left_end:
        return
    yield Case("further/past_span", 1, 1, 1, 70, span + 4 * plan.BN + 9, data="large_logits")
    seen = np.flatnonzero(plan.mask.first(np.arange(2 * span)) <= 0)
    keys = int(seen[-1]) + 36
    yield Case("further/first_key", 1, 1, 1, min(70, keys), keys, data="dominant_first")


def _blocks(plan: AttentionPlan, case: Case) -> int:
    found = score_tiles(plan, case)
    return found["full"] + found["partial"]


def gemm_further(plan: GemmPlan, wanted: Wanted) -> tuple[GemmCase, ...]:
    """Return cases to try for the goals ``wanted``.

    None for branches: the default cases have every factor, edge and number of tiles already.
    """
    cases = [gemm_rings(plan, times=2)] if wanted.rings or wanted.several_tiles else []
    if wanted.single_tile:
        cases.append(GemmCase("further/one_tile", 3, 8, 8))
    return tuple(cases)


def loads(plan: AttentionPlan) -> Iterator[tuple[int, int]]:
    """Yield of each ring of keys or values the slots, and how many a block of keys takes at least.

    CTAs of a cluster load a share of the block each, or all of it.
    """
    keys, values = (plan.BN * plan.element_bytes * d for d in (plan.depth, plan.value_depth))
    bytes_of = {"key_full": keys, "value_full": values, "value_rows_full": values}
    bytes_of |= dict.fromkeys(("kv_full", "kv_producer", "ring_full"), keys + values)
    for row in plan.barriers:
        if row.name in bytes_of and row.transaction_bytes:  # not what warps put there by stores
            a_block = bytes_of[row.name] // (row.transaction_bytes * plan.cta_group)
            yield row.slots, max(1, a_block)
