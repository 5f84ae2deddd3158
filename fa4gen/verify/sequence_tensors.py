"""Sequences of different lengths in the tensors of a call: their tables, keys and references."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fa4gen.verify.reference import AttentionResult, MaxLogits
from fa4gen.verify.rounding import POISON_BITS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from fa4gen.designs.common.attention_model import AttentionPlan
    from fa4gen.verify.cases import Case
    from fa4gen.verify.sequences import Lengths

SPARE_PAGES = 3
"""The pages of a cache without keys of a sequence."""


def packed_rows(plan: AttentionPlan) -> tuple[bool, bool]:
    """Whether the rows of all sequences follow one another: of queries, and of keys."""
    return plan.is_ragged, plan.keys == "ragged"


def drawn_rows(plan: AttentionPlan) -> tuple[bool, bool]:
    """Whether inputs are drawn as the rows of all sequences: for queries, and for keys."""
    return plan.is_ragged, plan.key_source.clipped


def draw_tables(
    plan: AttentionPlan,
    lengths: Lengths,
    rng: np.random.Generator,
    *,
    shared_pages: bool = False,
) -> dict[str, NDArray[np.int32]]:
    """Return the arrays that place the sequences, by argument; {} for a kernel without them.

    Pages are in random order, and some belong to no sequence. Entries of the table that no sequence
    reaches are far outside the cache. ``shared_pages``: all begin with pages of the first one.
    """
    tables: dict[str, Any] = {}
    for which, name in enumerate(("query_offsets", "key_offsets")):
        if packed_rows(plan)[which]:
            tables[name] = np.cumsum([0, *(pair[which] for pair in lengths)])
    keys = np.array([pair[1] for pair in lengths], np.int64)
    if plan.key_lengths:
        tables["key_lengths"] = keys
    if plan.is_paged:
        counts = plan.key_source.pages(keys)
        pages = rng.permutation(int(counts.sum()) + SPARE_PAGES)
        table = np.full((len(keys), int(counts.max(initial=0)) + 1), POISON_BITS["int32"])
        used = np.arange(table.shape[1]) < counts[:, None]
        table[used] = pages[: int(counts.sum())]
        whole = keys // plan.key_source.page_rows
        for row, pages_of_row in zip(table, whole, strict=True):
            same = min(pages_of_row, whole[0]) if shared_pages else 0
            row[:same] = table[0, :same]
        tables["page_table"] = table
    return {name: table.astype(np.int32) for name, table in tables.items()}


def in_place(
    plan: AttentionPlan, case: Case, rows: NDArray[np.float32], tables: Mapping[str, Any]
) -> NDArray[np.float32]:
    """Return packed keys or values (1, rows, heads, depth) in the kernel's layout.

    Rows outside all sequences are NaN.
    """
    if not plan.key_source.clipped or plan.keys == "ragged":
        return rows
    if plan.is_paged:
        used = sum(plan.key_source.pages(keys) for _, keys in case.sequences)
        shape = (used + SPARE_PAGES, plan.key_source.page_rows)
    else:
        shape = (len(case.sequences), max(case.key_rows, 1))
    whole = np.full((shape[0] * shape[1], *rows.shape[2:]), np.nan, np.float32)
    begin = 0
    for number, (_, keys) in enumerate(case.sequences):
        whole[plan.key_source.rows(number, shape[1], tables)] = rows[0, begin : begin + keys]
        begin += keys
    return whole.reshape(*shape, *rows.shape[2:])


def read_back(
    plan: AttentionPlan, case: Case, whole: NDArray[np.float32], tables: Mapping[str, Any]
) -> NDArray[np.float32]:
    """Return the rows of all sequences that the result of ``in_place`` has in pages.

    Of sequences that share pages those of the last one are there.
    """
    places = [plan.key_source.rows(i, 0, tables) for i in range(len(case.sequences))]
    rows: NDArray[np.float32] = whole.reshape(-1, *whole.shape[2:])[np.concatenate(places)]
    return rows[None]


def in_one_tensor(plan: AttentionPlan, case: Case) -> Case:
    """Return the case in a layout that its tensors can have.

    Query, key and value are slices of one tensor only where all have the same rows and type.
    """
    same = plan.keys == plan.batching and not plan.key_lengths and plan.kv_dtype == plan.dtype
    same = same and not plan.values_in_keys
    return case if same or case.layout != "packed" else replace(case, layout="padded")


@dataclass(frozen=True)
class Part:
    """A sequence: its batch and rows in the query's tensor, its batch and rows in the key's."""

    query: tuple[int, slice]
    key: tuple[int, slice]


def sequence_parts(plan: AttentionPlan, lengths: Lengths) -> list[Part]:
    """Return the place of each sequence in tensors (batch, rows, heads, depth)."""
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
    compute: Callable[[int, Any, Any, Any], AttentionResult],
    parts: Sequence[Part],
    query: Any,
    key: Any,
    value: Any,
    xp: Any,
) -> AttentionResult:
    """Return the results of ``compute``, sequence by sequence, in tensors like the query.

    It is given a sequence's number, and its own rows of query, key and value.
    """
    batch, rows, heads, _ = query.shape
    of_rows, of_columns = (batch, heads, rows), (batch, rows, heads, value.shape[3])
    shapes: dict[str, tuple[int, ...]] = {"lse": of_rows, "shift": of_rows}
    shapes |= dict.fromkeys(("out", "low", "high"), of_columns)
    whole: dict[str, Any] = {name: xp.zeros(shapes[name]) for name in ("out", "lse")}
    max_logits: MaxLogits | None = None
    for number, part in enumerate(parts):
        (query_batch, of_queries), (key_batch, of_keys) = part.query, part.key
        result = compute(
            number,
            query[query_batch : query_batch + 1, of_queries],
            key[key_batch : key_batch + 1, of_keys],
            value[key_batch : key_batch + 1, of_keys],
        )
        found = {name: array for name, array in vars(result).items() if array is not None}
        largest = found.pop("max_logits", None)
        if largest is not None:
            max_logits = largest if max_logits is None else largest.raised(max_logits, xp)
        if number == 0:
            whole = {name: xp.zeros(shapes[name], array.dtype) for name, array in found.items()}
            whole["lse"] -= xp.inf
        for name, array in found.items():
            if shapes[name] is of_columns:
                whole[name][query_batch, of_queries] = array[0]
            else:
                whole[name][query_batch, :, of_queries] = array[0]
    return AttentionResult(**whole, max_logits=max_logits)
