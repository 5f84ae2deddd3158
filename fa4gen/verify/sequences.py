"""Batches of sequences of any lengths: hard ones, their tables, and their references.

``Lengths`` are query rows and keys of each sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.reference import AttentionResult
from fa4gen.verify.rounding import POISON_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from fa4gen.designs.shared.attention_model import AttentionPlan
    from fa4gen.verify.cases import Case

Lengths = tuple[tuple[int, int], ...]
SPARE_PAGES = 3
"""Of a cache, in which no sequence's keys are."""


def small_sequences(plan: AttentionPlan) -> Mapping[str, Lengths]:
    """Return batches for the emulator, by name; none for kernels of dense batches."""
    if not plan.has_tile_lengths:
        return {}
    m, n = plan.BM, plan.BN
    page = plan.page_size or 64
    return {
        "none_and_one": _of(plan, (0, 0), (1, 1), (0, 5), (3, 0), (1, n + 1), (0, 0)),
        "edges": _of(plan, (m, n), (m + 1, n + 1), (m - 1, n - 1), (64, 2 * n), (65, 1)),
        "giant": _of(plan, *((1 + i % 3, 2 + i) for i in range(9)), (2 * m + 5, 3 * n + 7), (2, 3)),
        "pages": _of(plan, (5, page), (9, page + 1), (7, page - 1), (3, 2 * n), (m, 3 * page)),
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


def drawn_rows(plan: AttentionPlan) -> tuple[bool, bool]:
    """Whether inputs are drawn as the rows of all sequences: of queries, and of keys."""
    return plan.is_ragged, plan.key_source.clipped


def draw_tables(
    plan: AttentionPlan, lengths: Lengths, rng: np.random.Generator
) -> dict[str, NDArray[np.int32]]:
    """Return the arrays that say where the sequences are, by argument; {} where none does.

    Pages are in random order, and some are no sequence's. Entries of the table that no sequence
    reaches are far outside the cache.
    """
    tables: dict[str, Any] = {}
    for which, name in enumerate(("query_offsets", "key_offsets")):
        if packed_rows(plan)[which]:
            tables[name] = np.cumsum([0, *(pair[which] for pair in lengths)])
    keys = np.array([pair[1] for pair in lengths], np.int64)
    if plan.key_lengths:
        tables["key_lengths"] = keys
    if plan.page_size is not None:
        counts = -(-keys // plan.page_size)
        pages = rng.permutation(int(counts.sum()) + SPARE_PAGES)
        table = np.full((len(keys), int(counts.max(initial=0)) + 1), POISON_BITS["int32"])
        used = np.arange(table.shape[1]) < counts[:, None]
        table[used] = pages[: int(counts.sum())]
        tables["page_table"] = table
    return {name: table.astype(np.int32) for name, table in tables.items()}


def in_place(
    plan: AttentionPlan, case: Case, rows: NDArray[np.float32], tables: Mapping[str, Any]
) -> NDArray[np.float32]:
    """Return packed keys or values (1, rows, heads, depth) where the kernel finds them.

    What is no sequence's is NaN.
    """
    if not plan.key_source.clipped or plan.keys == "ragged":
        return rows
    if plan.page_size is not None:
        used = sum(-(-keys // plan.page_size) for _, keys in case.sequences)
        shape = (used + SPARE_PAGES, plan.page_size)
    else:
        shape = (len(case.sequences), max(case.key_rows, 1))
    whole = np.full((shape[0] * shape[1], *rows.shape[2:]), np.nan, np.float32)
    begin = 0
    for number, (_, keys) in enumerate(case.sequences):
        whole[plan.key_source.rows(number, shape[1], tables)] = rows[0, begin : begin + keys]
        begin += keys
    return whole.reshape(*shape, *rows.shape[2:])


def in_one_tensor(plan: AttentionPlan, case: Case) -> Case:
    """Return the case in a layout that its tensors can have.

    Query, key and value are slices of one tensor only where all have the same rows.
    """
    same = plan.keys == plan.batching and not plan.key_lengths
    return case if same or case.layout != "packed" else replace(case, layout="padded")


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
        for which, packed in enumerate(drawn_rows(plan)):
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
