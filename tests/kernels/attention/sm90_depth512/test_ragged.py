# ruff: noqa: E501 (a mutant is on the line of its name)
"""Depth 512 on Hopper: sequences of different lengths over pairs of CTAs, and their mutants."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.attention.launches import ShownMutant
from tests.kernels.attention.sequences import NAN, assert_isolated, failures
from tests.kernels.source_mutation import Change, kernel_of

PAIR: dict[str, Any] = {"arch": "sm_90a", "depth": 512, "cta_group": 2}
RAGGED: dict[str, Any] = {**PAIR, "batching": "ragged", "mask": "causal"}
PAGED: dict[str, Any] = {**RAGGED, "keys": "paged", "page_size": 16}
FEW = ((3, 20), (70, 150), (1, 0))
"""The last block of keys has some of the first CTA's, and none of the second's."""
HARD = ((3, 20), (0, 4), (130, 150), (5, 300), (2, 0))
"""Also a sequence of two tiles, one of three blocks, and one without rows."""
SAME_ROWS = ((9, 20), (9, 0), (9, 300))


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys", [RAGGED, pytest.param(PAGED, marks=pytest.mark.seeds)], ids=["ragged", "pages"]
)
def test_a_sequence_gives_the_same_bits_whatever_its_neighbours_hold(keys: dict[str, Any]) -> None:
    assert_isolated(kernel_of(keys), FEW, (1,), (NAN,))


COMBINED: dict[str, dict[str, Any]] = {
    "pages": PAGED,
    "lengths, no lse": {"key_lengths": True, "lse": False, "mask": "causal"},
}
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
    "ragged queries, dense keys, sinks": {
        "batching": "ragged", "keys": "dense", "key_lengths": True, "sinks": True,
    },
    "pages of a block, every maximum rescales": {
        **PAGED, "page_size": 128, "rescale_threshold": 0.0,
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
    "keys of the first CTA": (
        RAGGED, Change(r"rows\.coordinate\(key\.block \* kBN \+ rank \* kOwnKeys\)",
                       "rows.coordinate(key.block * kBN)"),
    ),
    "values of a row later": (
        RAGGED, Change(r"const int32 place = rows\.place\(\);\n    return", "const int32 place = rows.place() + 1;\n    return"),
    ),
    "tail not clipped": (
        RAGGED, Change(r"return kEndRow - count \+ row; \}", "return row; }"),
    ),
    "output of a row later": (
        RAGGED, Change(r"\(tile\.query_begin \+ thread_row\)", "(tile.query_begin + 1 + thread_row)"),
    ),
    "log-sum-exp of a sequence of its own": (
        RAGGED, Change(r"out\.rows \+ tile\.query_begin;", "out.rows;"),
    ),
    "the peer knows no lengths": (
        RAGGED, Change(r"store_async_v4\(peer\.base \+ kTileOffset \+ kTileBytes \* slot \+ 16, tile\.query_begin,",
                       "store_async_v4(peer.base + kTileOffset + kTileBytes * slot + 16, 0,"),
    ),
    "lengths of the first tile": (
        RAGGED, Change(r"(\+\+tiles\.uses;\s+)take_lengths\(problem, tile\);",
                       r"\1if (tiles.uses == 1) take_lengths(problem, tile);"),
    ),
    "page of the first chunk": (
        PAGED, Change(r"static_cast<int32>\(threadIdx\.x\) % kNumKvStages \* kWgmmaKeys", "0"),
    ),
    "values of the other half": (
        PAGED, Change(r"chunk < kOwnChunks \? rank : rank \^ 1", "chunk < kOwnChunks ? rank ^ 1 : rank"),
    ),
    "page of the block before": (
        PAGED, Change(r"look_up\(walk\.block\)", "look_up(walk.block + 1)"),
    ),
    "row of another sequence": (
        PAGED, Change(r"(page_table_of\(problem, walk\.key_begin)\)", r"\1 ^ 1)"),
    ),
    "whole pages": (PAGED, Change(r"min\(end - page_begin, kPageSize\)", "kPageSize")),
    "bytes expected after the copies": (
        PAGED, Change(r"if \(threadIdx\.x == 0\) ring\.expect\(kRingBytes\);\s+__syncwarp\(\);",
                      "if (threadIdx.x == 31) ring.expect(kRingBytes);"),
    ),
}  # fmt: skip
QUICK = ("values of a row later", "page of the first chunk")
"""Made in every run, on few sequences, which show them; all of them with --many-seeds."""
SHOWN = {
    name: ShownMutant(keys, change, FEW if name in QUICK else HARD)
    for name, (keys, change) in MUTANTS.items()
}
