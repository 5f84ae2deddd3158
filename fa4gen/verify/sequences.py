"""Batches of sequences of any lengths: hard ones, their tables, and their references.

``Lengths`` are query rows and keys of each sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.reference import AttentionResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fa4gen.designs.shared.attention_model import AttentionPlan

Lengths = tuple[tuple[int, int], ...]


def small_sequences(plan: AttentionPlan) -> Mapping[str, Lengths]:
    """Return batches for the emulator, by name; none for kernels of dense batches."""
    if not plan.has_tile_lengths:
        return {}
    m, n = plan.BM, plan.BN
    return {
        "none_and_one": _of(plan, (0, 0), (1, 1), (0, 5), (3, 0), (1, n + 1), (0, 0)),
        "edges": _of(plan, (m, n), (m + 1, n + 1), (m - 1, n - 1), (64, 2 * n), (65, 1)),
        "giant": _of(plan, *((1 + i % 3, 2 + i) for i in range(9)), (2 * m + 5, 3 * n + 7), (2, 3)),
        "all_empty": _of(plan, (0, 0), (0, 7), (0, 0)),
        "more_than_a_warp": _of(plan, *((i % 4, 1 + i % 7) for i in range(40))),
    }


def hard_sequences(plan: AttentionPlan) -> Mapping[str, Lengths]:
    """Return batches for a GPU, by name; none for kernels of dense batches."""
    if not plan.has_tile_lengths:
        return {}
    m, n = plan.BM, plan.BN
    around = [(rows, keys) for rows in _around(m) for keys in _around(n)]
    halves = [(64 * i + d, 2 * n + d) for i in range(1, 5) for d in (-1, 0, 1)]
    return {
        **small_sequences(plan),
        "around": _of(plan, *around, *halves),
        "thousands": _of(plan, *((i * 7 % 5, 1 + i * 5 % 11) for i in range(3000))),
        "giant_among_dwarfs": _of(
            plan, *((1 + i % 9, 1 + i % 70) for i in range(50)), (5000, 5100), (1, 4000), (700, 700)
        ),
        "growing": _of(plan, *((17 * i, 17 * i) for i in range(1, 40))),
        "prefill_and_decode": _of(
            plan, (512, 3000), *((1, 200 * i) for i in range(20)), (300, 300)
        ),
    }


def _of(plan: AttentionPlan, *pairs: tuple[int, int]) -> Lengths:
    """Return the pairs, with the same rows in each where queries are dense, and so with keys."""
    rows, keys = (max(pair[i] for pair in pairs) for i in (0, 1))
    return tuple(
        (own if plan.query_source.clipped else rows, seen if plan.key_source.clipped else keys)
        for own, seen in pairs
    )


def _around(length: int) -> Iterator[int]:
    yield from (length - 1, length, length + 1)


def packed_rows(plan: AttentionPlan) -> tuple[bool, bool]:
    """Whether the rows of all sequences follow one another: of queries, and of keys."""
    return plan.is_ragged, plan.keys == "ragged"


def draw_tables(plan: AttentionPlan, lengths: Lengths) -> dict[str, NDArray[np.int32]]:
    """Return the arrays that say where the sequences are, by argument; {} where none does."""
    tables: dict[str, NDArray[np.int32]] = {}
    for which, name in enumerate(("query_offsets", "key_offsets")):
        if packed_rows(plan)[which]:
            ends = np.cumsum([0, *(pair[which] for pair in lengths)])
            tables[name] = ends.astype(np.int32)
    return tables


@dataclass(frozen=True)
class Part:
    """A sequence: its batch and rows in the query's tensor, its batch and rows in the key's."""

    query: tuple[int, slice]
    key: tuple[int, slice]


def sequence_parts(plan: AttentionPlan, lengths: Lengths) -> list[Part]:
    """Return where each sequence is in tensors (batch, rows, heads, depth)."""
    begins = [0, 0]
    parts = []
    for number, pair in enumerate(lengths):
        places = []
        for which, packed in enumerate(packed_rows(plan)):
            begin = begins[which] if packed else 0
            places.append((0 if packed else number, slice(begin, begin + pair[which])))
            begins[which] += pair[which]
        parts.append(Part(*places))
    return parts


def by_sequence(
    compute: Callable[[Any, Any, Any], AttentionResult],
    parts: Sequence[Part],
    query: Any,
    key: Any,
    value: Any,
    xp: Any,
) -> AttentionResult:
    """Return the results of ``compute``, sequence by sequence, in tensors like the query."""
    batch, rows, heads, _ = query.shape
    out: Any = None
    lse: Any = None
    for part in parts:
        (query_batch, of_queries), (key_batch, of_keys) = part.query, part.key
        result = compute(
            query[query_batch : query_batch + 1, of_queries],
            key[key_batch : key_batch + 1, of_keys],
            value[key_batch : key_batch + 1, of_keys],
        )
        if out is None:
            out = xp.zeros((batch, rows, heads, value.shape[3]), result.out.dtype)
            lse = xp.full((batch, heads, rows), -xp.inf, result.lse.dtype)
        out[query_batch, of_queries] = result.out[0]
        lse[query_batch, :, of_queries] = result.lse[0]
    if out is None:
        out = xp.zeros((batch, rows, heads, value.shape[3]))
        lse = xp.zeros((batch, heads, rows))
    return AttentionResult(out, lse)
