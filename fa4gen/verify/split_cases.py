"""Cases for kernels whose CTAs share the keys of a tile: few rows, many keys, pieces to combine."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from fa4gen.verify.cases import COUNTING, TURNS, Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.designs.common.decode_model import SharedKeysPlan

PIECES = 14
"""The pieces of a tile: more than a thread loads at once."""
GROUPED = 26
"""Pieces that are combined group by group."""

HARD = (
    "far_apart", "rising", "falling", "rising_and_falling", "all_logits_low", "counting_rising",
)  # fmt: skip


def split_cases(plan: AttentionPlan) -> Iterator[Case]:
    """Yield problems of decoding for a GPU; none for other kernels."""
    if not plan.splits_keys:
        return
    n = plan.BN
    for index, (group, rows) in enumerate(
        (
            (1, 1),
            (2, 1),
            (4, 1),
            (5, 1),
            (7, 1),
            (8, 1),
            (16, 1),
            (1, 7),
            (4, 4),
            (3, 5),
            (2, 16),
            (8, 4),
            (16, 4),
            (5, 13),
        )
    ):
        keys = 1000 * (index + 1) + 77 * index
        batch, data = 1 + index % 4, TURNS[index % 2]
        yield Case(f"split/{group}x{rows}", batch, 2 * group, 2, rows, keys, data=data)
    yield Case("split/long", 1, 8, 2, 1, 70_001)
    yield Case("split/long_one_key_head", 1, 8, 1, 1, 40_003)
    yield Case("split/wide_batch", 300, 4, 1, 1, 333, data=COUNTING)
    yield Case("split/line_of_tiles", 7, 12, 3, 3, 5 * n + 1, "bhsd")
    for kind in HARD:
        yield Case(f"split/{kind}", 2, 8, 2, 1, 9001, data=kind)
        yield Case(f"split/{kind}_rows", 1, 4, 2, 4, 3001, data=kind)


def small_split_cases(plan: AttentionPlan) -> Iterator[Case]:
    """Yield fewer and smaller ones, for the emulator."""
    if not plan.splits_keys:
        return
    n = plan.BN
    # One row, and as many rows as a tile has: threads share columns, or not.
    yield Case(
        "split/pieces_of_a_row",
        1,
        1,
        1,
        1,
        PIECES * n - 3,
        data="far_apart",
        multiprocessors=PIECES,
    )
    yield Case(
        "split/pieces_of_rows", 1, plan.BM, 1, 1, PIECES * n, data="far_apart",
        multiprocessors=PIECES,
    )  # fmt: skip
    # Enough pieces for groups of them.
    yield Case("split/groups", 1, 2, 1, 1, GROUPED * n, data="far_apart", multiprocessors=GROUPED)
    yield Case("split/rows_and_heads", 1, 4, 2, 3, 3 * n + 9, "bhsd", "counting_rising")
    yield Case(
        "split/pieces_and_heads", 1, 4, 2, 3, 5 * n + 9, data=COUNTING,
        multiprocessors=7 * plan.ctas_per_tile,
    )  # fmt: skip
    yield Case("split/batch", 3, 6, 2, 1, n + 1, data=COUNTING, multiprocessors=5)
    yield from _joins(cast("SharedKeysPlan", plan))


def _joins(plan: SharedKeysPlan) -> Iterator[Case]:
    """Yield cases with threads that join the most pieces, and shares that differ in length."""
    n, rows, ctas = plan.BN, plan.BM, plan.ctas_per_tile
    if plan.split_blocks:  # of which a thread joins all, where a tile has all of its rows
        keys = (plan.partials_at_once + 1) * plan.split_blocks * n
        yield Case("split/joined", 1, rows, 1, 1, keys)
        return
    # 3 tiles of 5 places for 4 CTAs: places of all tiles but the last are in the longer shares.
    yield Case("split/longer", 1, 3 * rows, 3, 1, 4 * n + 1, multiprocessors=4 * ctas)
    if plan.key_lengths:  # a CTA has slices of a tile of few pieces, and of one of many
        few, many = plan.pieces_to_join
        first, keys = (2 * few - 1) * n, (2 * many - 1) * n
        yield Case(
            "split/joined", 2, rows, 1, 1, keys, lengths=((1, first), (1, keys)),
            multiprocessors=(few + many - 1) * ctas,
        )  # fmt: skip
    elif plan.partials_at_once > 2:  # two are joined in other cases, too
        _, pieces = plan.neighbours_joined
        blocks = 3 * pieces - 1  # the blocks of a tile; this number of CTAs have three blocks each
        yield Case("split/joined", 1, 3 * rows, 3, 1, blocks * n, multiprocessors=blocks * ctas)
