"""The batch in a kernel's form: the shapes of its tensors, and the tables of its call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from fa4gen.errors import ConfigError, Problem
from fa4gen.runtime.strides import ALIGNMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fa4gen.bench.workload import Workload
    from fa4gen.designs.common.attention_model import AttentionPlan

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """Tensors and tables of one call."""

    workload: Workload
    query: Shape
    key: Shape
    value: Shape
    tables: Mapping[str, Any]
    """int32 arrays by the name of the call's argument: offsets, lengths, the page table."""

    @property
    def out(self) -> Shape:
        """The shape of the output."""
        return (*self.query[:-1], self.workload.value_depth)

    @property
    def lse(self) -> Shape:
        """The shape of the log-sum-exp: heads before rows."""
        *batch, rows, heads, _ = self.query
        return (*batch, heads, rows)

    def query_rows(self, tensor: Any, index: int, head: int) -> Any:
        """Return a sequence's rows of the query or the output: (1, rows, 1, columns)."""
        rows = self.workload.query_rows[index]
        if "query_offsets" in self.tables:
            begin = sum(self.workload.query_rows[:index])
            return tensor[None, begin : begin + rows, head : head + 1]
        return tensor[index : index + 1, :rows, head : head + 1]

    def key_rows(self, tensor: Any, index: int, head: int) -> Any:
        """Return a sequence's rows of the keys or values: (1, rows, 1, columns)."""
        rows = self.workload.key_rows[index]
        if "key_offsets" in self.tables:
            begin = sum(self.workload.key_rows[:index])
            return tensor[None, begin : begin + rows, head : head + 1]
        if "page_table" in self.tables:
            pages = -(-rows // tensor.shape[1])
            taken = tensor[self.tables["page_table"][index, :pages].tolist()]
            return taken.reshape(1, -1, *tensor.shape[2:])[:, :rows, head : head + 1]
        return tensor[index : index + 1, :rows, head : head + 1]


def lay_out(plan: AttentionPlan, workload: Workload, seed: int = 0) -> Layout:
    """Arrange ``workload`` for a kernel; pages are in an order drawn with ``seed``.

    Raises ConfigError for a batch that the kernel does not support.
    """
    import numpy as np

    tables: dict[str, Any] = {}
    queries, keys = workload.query_rows, workload.key_rows
    leading: Shape = (workload.batch, workload.rows)
    if plan.is_ragged:
        tables["query_offsets"] = _offsets(queries)
        leading = (sum(queries),)
    elif len(set(queries)) > 1:
        raise _refusal(plan, workload, "numbers of query rows, which needs batching: ragged")
    key_leading: Shape = (workload.batch, workload.most_keys)
    if plan.is_paged:
        size = plan.key_source.page_rows
        pages = [plan.key_source.pages(rows) for rows in keys]
        order = np.random.default_rng(seed).permutation(sum(pages)).astype(np.int32)
        table = np.zeros((workload.batch, max(pages)), np.int32)
        begins = _offsets(tuple(pages))
        for row, begin, count in zip(table, begins, pages, strict=False):
            row[:count] = order[begin : begin + count]
        tables["page_table"] = table
        key_leading = (sum(pages), size)
    elif plan.keys == "ragged":
        tables["key_offsets"] = _offsets(keys)
        key_leading = (sum(keys),)
    elif not plan.key_lengths and len(set(keys)) > 1:
        raise _refusal(plan, workload, "numbers of keys, which needs keys: ragged or paged")
    if plan.key_lengths:
        tables["key_lengths"] = np.array(keys, np.int32)
    heads, key_heads = workload.heads, workload.key_heads
    return Layout(
        workload,
        (*leading, heads, workload.depth),
        (*key_leading, key_heads, workload.depth),
        (*key_leading, key_heads, workload.value_depth),
        tables,
    )


def with_values(
    plan: AttentionPlan, layout: Layout, make: Callable[[Shape, int], Any]
) -> tuple[Any, Any]:
    """Return keys and values as a call takes them; ``make`` an array by its shape and a number.

    Values may be the first columns of keys, or lie in lines of keys.
    """
    key = make(layout.key, 1)
    if plan.values_in_keys:
        return key, key[..., : plan.value_depth]
    if not plan.has_lines_of_keys:
        return key, make(layout.value, 2)
    batch, rows, heads, depth = layout.value
    line = math.ceil(rows / ALIGNMENT) * ALIGNMENT
    return key, make((batch, heads, depth, line), 2)[..., :rows].transpose(0, 3, 1, 2)


def cache_scales(plan: AttentionPlan, layout: Layout) -> dict[str, Any]:
    """Return scales of 1 for fp8 keys and values in pages, or with another query, by argument.

    One for each sequence, or page, and key head: reading them takes time, too. None of queries.
    """
    import numpy as np

    if plan.kv_dtype == plan.dtype and not plan.has_page_scales:
        return {}
    count = layout.key[0] if plan.has_page_scales else layout.workload.batch
    shape = (count, layout.workload.key_heads)
    return {f"{name}_descale": np.ones(shape, np.float32) for name in ("key", "value")}


def _offsets(rows: tuple[int, ...]) -> Any:
    import numpy as np

    return np.array([0, *accumulate(rows)], np.int32)


def _refusal(plan: AttentionPlan, workload: Workload, what: str) -> ConfigError:
    return ConfigError(
        Problem(
            f"{plan.name}: the sequences of {workload.word} have different {what}",
            "Give --sizes of equal sequences, as in 2k or 2x512x16k.",
        )
    )
