"""Batches of sequences with hard lengths: query rows and keys of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.designs.common.attention_model import AttentionPlan

Lengths = tuple[tuple[int, int], ...]


def small_sequences(plan: AttentionPlan) -> Mapping[str, Lengths]:
    """Return batches for the emulator, by name; none for kernels of dense batches."""
    if not plan.has_tile_lengths:
        return {}
    m, n = plan.BM, plan.BN
    page = plan.key_source.page_rows if plan.is_paged else 64
    return {
        "none_and_one": batch_of(plan, (0, 0), (1, 1), (0, 5), (3, 0), (1, n + 1), (0, 0)),
        "edges": batch_of(plan, (m, n), (m + 1, n + 1), (m - 1, n - 1), (64, 2 * n), (65, 1)),
        "giant": batch_of(
            plan, *((1 + i % 3, 2 + i) for i in range(9)), (2 * m + 5, 3 * n + 7), (2, 3)
        ),
        "pages": batch_of(plan, (5, page), (9, page + 1), (7, page - 1), (3, 2 * n), (m, 3 * page)),
        "all_empty": batch_of(plan, (0, 0), (0, 7), (0, 0)),
        "more_than_a_warp": batch_of(plan, *((i % 4, 1 + i % 7) for i in range(40))),
    }


def hard_sequences(plan: AttentionPlan) -> Mapping[str, Lengths]:
    """Return batches for a GPU, by name; none for kernels of dense batches."""
    if not plan.has_tile_lengths:
        return {}
    m, n = plan.BM, plan.BN
    # Dense queries have the giant's rows in each of 53 sequences.
    giant_rows = 5000 if plan.query_source.clipped else min(2 * m, 256)
    near = [(rows, keys) for rows in around(m) for keys in around(n)]
    halves = [(64 * i + d, 2 * n + d) for i in range(1, 5) for d in (-1, 0, 1)]
    return {
        **small_sequences(plan),
        "around": batch_of(plan, *near, *halves),
        "thousands": batch_of(plan, *((i * 7 % 5, 1 + i * 5 % 11) for i in range(3000))),
        "giant_among_dwarfs": batch_of(
            plan,
            *((1 + i % 9, 1 + i % 70) for i in range(50)),
            (giant_rows, 5100),
            (1, 4000),
            (min(700, giant_rows), 700),
        ),
        "growing": batch_of(plan, *((17 * i, 17 * i) for i in range(1, 40))),
        "prefill_and_decode": batch_of(
            plan, (512, 3000), *((1, 200 * i) for i in range(20)), (300, 300)
        ),
    }


def batch_of(plan: AttentionPlan, *pairs: tuple[int, int]) -> Lengths:
    """Return the pairs, with the same rows in each where queries are dense, and so with keys."""
    rows, keys = (max(pair[i] for pair in pairs) for i in (0, 1))
    return tuple(
        (own if plan.query_source.clipped else rows, seen if plan.key_source.clipped else keys)
        for own, seen in pairs
    )


def around(length: int) -> tuple[int, int, int]:
    """Return the lengths one below, at and above one."""
    return length - 1, length, length + 1
