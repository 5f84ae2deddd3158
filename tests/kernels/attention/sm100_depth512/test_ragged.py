"""Depth 512 on Blackwell: sequences of different lengths over pairs of CTAs, and their mutants."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.attention.launches import ShownMutant
from tests.kernels.attention.sequences import NAN, assert_isolated, failures
from tests.kernels.source_mutation import Change, kernel_of

PAIR: dict[str, Any] = {"depth": 512, "cta_group": 2}
RAGGED: dict[str, Any] = {**PAIR, "batching": "ragged", "mask": "causal"}
PAGED: dict[str, Any] = {**RAGGED, "keys": "paged", "page_size": 16}
FEW = ((3, 20), (70, 150), (1, 0))
"""The second CTA of a pair has no rows, some, none; the last sequence has no keys."""
HARD = ((3, 20), (0, 4), (70, 150), (5, 300), (2, 0))
"""Also keys of two blocks, whose last ends within its first page, and a sequence without rows."""
SAME_ROWS = ((9, 20), (9, 0), (9, 300))


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys", [RAGGED, pytest.param(PAGED, marks=pytest.mark.seeds)], ids=["ragged", "pages"]
)
def test_a_sequence_gives_the_same_bits_whatever_its_neighbours_hold(keys: dict[str, Any]) -> None:
    assert_isolated(kernel_of(keys), FEW, (1,), (NAN,))


COMBINED: dict[str, dict[str, Any]] = {
    "pages, static": {**PAGED, "page_size": 64, "scheduler": "static"},
    "lengths, no lse": {"key_lengths": True, "lse": False, "mask": "causal"},
    "fp8": {**RAGGED, "dtype": "fp8_e4m3"},
}  # fmt: skip
FURTHER: dict[str, dict[str, Any]] = {
    "static": {**RAGGED, "scheduler": "static"},
    "window, capped, fp16": {
        "batching": "ragged", "keys": "paged", "page_size": 32, "mask": {"sliding_window": 70},
        "softcap": 20.0, "dtype": "fp16",
    },
    "chunks, sinks, large pages of dense batches": {
        "keys": "paged", "page_size": 256, "mask": {"chunked": 50}, "sinks": True,
    },
    "lengths, static": {"key_lengths": True, "scheduler": "static"},
    "fp8, pages": {**PAGED, "dtype": "fp8_e4m3"},
    "ragged queries, dense keys, sinks": {
        "batching": "ragged", "keys": "dense", "key_lengths": True, "sinks": True,
    },
    "two slots, every maximum rescales": {
        **PAGED, "page_size": 128, "num_kv_stages": 2, "rescale_threshold": 0.0,
    },
}  # fmt: skip


@pytest.mark.emulate
@pytest.mark.parametrize(
    "keys",
    [
        *(pytest.param(keys, id=name) for name, keys in COMBINED.items()),
        *(pytest.param(keys, id=name, marks=pytest.mark.seeds) for name, keys in FURTHER.items()),
    ],
)
def test_what_combines_with_sequences_of_different_lengths(keys: dict[str, Any]) -> None:
    lengths = HARD if keys.get("batching") == "ragged" else SAME_ROWS
    assert failures(kernel_of({**PAIR, **keys}), lengths) == []


MUTANTS: dict[str, tuple[dict[str, Any], Change]] = {
    "the peer's keys": (
        RAGGED, Change(r"block \* kBN \+ rank \* \(kBN / kCtaGroup\)", "block * kBN"),
    ),
    "keys of a row later": (
        RAGGED, Change(r"keys\{tile\.key_begin,", "keys{tile.key_begin + 1,"),
    ),
    "values of the part before": (
        RAGGED, Change(r"block \* kBN \+ part \* kBK1", "block * kBN"),
    ),
    "tail not clipped": (
        RAGGED, Change(r"return kEndRow - count \+ row; \}", "return row; }"),
    ),
    "output of a row later": (
        RAGGED, Change(
            r"(out_map, staging, )Rows\{tile\.query_begin,", r"\1Rows{tile.query_begin + 1,"
        ),
    ),
    "log-sum-exp of a sequence of its own": (
        RAGGED, Change(r"lse_rows \+ tile\.query_begin \+ row", "lse_rows + row"),
    ),
    "a role keeps the lengths of the tile before": (
        RAGGED, Change(
            r"(run_mma[^~]*?while \(tiles\.next\(tile\)\) \{[^~]*?)take_lengths\(problem, tile\);",
            r"\1if (problem.key_rows == 0) take_lengths(problem, tile);",
        ),
    ),
    "page of the first part": (PAGED, Change(r"rows\(kBK1 \+ row\)", "rows(row)")),
    "page of the leader": (PAGED, Change(r"rows\(rank \* kLoadedRows \+ row\)", "rows(row)")),
    "page of the block before": (
        PAGED, Change(r"page_before\(places\.keys, block\)", "places.keys.page"),
    ),
    "row of another sequence": (
        PAGED, Change(r"(page_table_of\(problem, tile\.key_begin)\)", r"\1 ^ 1)"),
    ),
    "whole pages": (PAGED, Change(r"min\(end - page_begin, kPageSize\)", "kPageSize")),
    "bytes expected by every lane": (
        PAGED, Change(r"if \(threadIdx\.x % 32 == 0\)(\s+mbarrier_expect_leader)", r"\1"),
    ),
}  # fmt: skip
QUICK = ("the peer's keys", "page of the first part")
"""Made in every run, on few sequences, which show them; all of them with --many-seeds."""
SHOWN = {
    name: ShownMutant(keys, change, FEW if name in QUICK else HARD)
    for name, (keys, change) in MUTANTS.items()
}
