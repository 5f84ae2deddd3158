# ruff: noqa: E501 (a mutant is on the line of its name)
"""Depth 512: sequences of different lengths over pairs of CTAs, and mutants that show in them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.attention.launches import ShownMutant
from tests.kernels.attention.sequences import assert_isolated, failures
from tests.kernels.source_mutation import Change, kernel_of

Keys = dict[str, Any]
ARCHS = {"hopper": "sm_90a", "blackwell": "sm_100a"}
PAIR: dict[str, Keys] = {
    name: {"arch": arch, "depth": 512, "cta_group": 2} for name, arch in ARCHS.items()
}
RAGGED: dict[str, Keys] = {
    name: {**keys, "batching": "ragged", "mask": "causal"} for name, keys in PAIR.items()
}
PAGED: dict[str, Keys] = {
    name: {**keys, "keys": "paged", "page_size": 16} for name, keys in RAGGED.items()
}
FEW = ((3, 20), (70, 150), (1, 0))
"""The second CTA of a pair has no rows, some, none; or none of the last block of keys. The last
sequence has no keys."""
HARD = {
    "hopper": ((3, 20), (0, 4), (130, 150), (5, 300), (2, 0)),
    "blackwell": ((3, 20), (0, 4), (70, 150), (5, 300), (2, 0)),
}
"""Also a sequence without rows, keys of several blocks, whose last ends within its first page, and
on Hopper a sequence of two tiles."""
SAME_ROWS = ((9, 20), (9, 0), (9, 300))
SEEDS = pytest.mark.seeds


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(keys, id=f"{arch}, {kind}", marks=marks)
        for kind, each, marks in (("ragged", RAGGED, []), ("pages", PAGED, [SEEDS]))
        for arch, keys in each.items()
    ],
)
def test_a_sequence_gives_the_same_bits_whatever_its_neighbours_hold(keys: Keys) -> None:
    assert_isolated(kernel_of(keys), FEW, (1,), kinds=1)


CAUSAL: Keys = {"batching": "ragged", "mask": "causal"}
PAGES: Keys = {**CAUSAL, "keys": "paged", "page_size": 16}
OF_EACH: dict[str, Keys] = {
    "lengths, no lse": {"key_lengths": True, "lse": False, "mask": "causal"},
    "static": {**CAUSAL, "scheduler": "static"},
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
}  # fmt: skip
COMBINED: dict[str, dict[str, Keys]] = {
    "hopper": {
        "pages": PAGES, **OF_EACH,
        "pages of a block, every maximum rescales": {
            **PAGES, "page_size": 128, "rescale_threshold": 0.0,
        },
    },
    "blackwell": {
        "pages, static": {**PAGES, "page_size": 64, "scheduler": "static"}, **OF_EACH,
        "fp8": {**CAUSAL, "dtype": "fp8_e4m3"},
        "fp8, pages": {**PAGES, "dtype": "fp8_e4m3"},
        "two slots, every maximum rescales": {
            **PAGES, "page_size": 128, "num_kv_stages": 2, "rescale_threshold": 0.0,
        },
    },
}  # fmt: skip
SOME = ("pages", "pages, static", "lengths, no lse", "fp8")
"""Run every time; all of them with --many-seeds."""


@pytest.mark.emulate
@pytest.mark.parametrize(
    ("arch", "keys"),
    [
        pytest.param(arch, keys, id=f"{arch}, {name}", marks=[] if name in SOME else [SEEDS])
        for arch, combined in COMBINED.items()
        for name, keys in combined.items()
    ],
)
def test_what_combines_with_sequences_of_different_lengths(arch: str, keys: Keys) -> None:
    lengths = HARD[arch] if keys.get("batching") == "ragged" else SAME_ROWS
    assert failures(kernel_of({**PAIR[arch], **keys}), lengths) == []


MUTANTS: dict[str, tuple[Keys, Change]] = {
    "hopper: keys of the first CTA": (
        RAGGED["hopper"], Change(r"rows\.coordinate\(key\.block \* kBN \+ rank \* kOwnKeys\)",
                       "rows.coordinate(key.block * kBN)"),
    ),
    "hopper: values of a row later": (
        RAGGED["hopper"], Change(r"const int32 place = rows\.place\(\);\n    return", "const int32 place = rows.place() + 1;\n    return"),
    ),
    "hopper: tail not clipped": (
        RAGGED["hopper"], Change(r"return kEndRow - count \+ row; \}", "return row; }"),
    ),
    "hopper: output of a row later": (
        RAGGED["hopper"], Change(r"\(tile\.query_begin \+ thread_row\)", "(tile.query_begin + 1 + thread_row)"),
    ),
    "hopper: log-sum-exp of a sequence of its own": (
        RAGGED["hopper"], Change(r"out\.rows \+ tile\.query_begin;", "out.rows;"),
    ),
    "hopper: the peer knows no lengths": (
        RAGGED["hopper"], Change(r"store_async_v4\(peer\.base \+ kTileOffset \+ kTileBytes \* slot \+ 16, tile\.query_begin,",
                       "store_async_v4(peer.base + kTileOffset + kTileBytes * slot + 16, 0,"),
    ),
    "hopper: lengths of the first tile": (
        RAGGED["hopper"], Change(r"(\+\+tiles\.uses;\s+)take_lengths\(problem, tile\);",
                       r"\1if (tiles.uses == 1) take_lengths(problem, tile);"),
    ),
    "hopper: page of the first chunk": (
        PAGED["hopper"], Change(r"static_cast<int32>\(threadIdx\.x\) % kNumKvStages \* kWgmmaKeys", "0"),
    ),
    "hopper: values of the other half": (
        PAGED["hopper"], Change(r"chunk < kOwnChunks \? rank : rank \^ 1", "chunk < kOwnChunks ? rank ^ 1 : rank"),
    ),
    "hopper: page of the block before": (
        PAGED["hopper"], Change(r"look_up\(walk\.block\)", "look_up(walk.block + 1)"),
    ),
    "hopper: row of another sequence": (
        PAGED["hopper"], Change(r"(page_table_of\(problem, walk\.key_begin)\)", r"\1 ^ 1)"),
    ),
    "hopper: whole pages": (PAGED["hopper"], Change(r"min\(end - page_begin, kPageSize\)", "kPageSize")),
    "hopper: bytes expected after the copies": (
        PAGED["hopper"], Change(r"if \(threadIdx\.x == 0\) ring\.expect\(kRingBytes\);\s+__syncwarp\(\);",
                      "if (threadIdx.x == 31) ring.expect(kRingBytes);"),
    ),
    "blackwell: the peer's keys": (
        RAGGED["blackwell"], Change(r"block \* kBN \+ rank \* \(kBN / kCtaGroup\)", "block * kBN"),
    ),
    "blackwell: keys of a row later": (
        RAGGED["blackwell"], Change(r"keys\{tile\.key_begin,", "keys{tile.key_begin + 1,"),
    ),
    "blackwell: values of the part before": (
        RAGGED["blackwell"], Change(r"block \* kBN \+ part \* kBK1", "block * kBN"),
    ),
    "blackwell: tail not clipped": (
        RAGGED["blackwell"], Change(r"return kEndRow - count \+ row; \}", "return row; }"),
    ),
    "blackwell: output of a row later": (
        RAGGED["blackwell"], Change(
            r"(out_map, staging, )Rows\{tile\.query_begin,", r"\1Rows{tile.query_begin + 1,"
        ),
    ),
    "blackwell: log-sum-exp of a sequence of its own": (
        RAGGED["blackwell"], Change(r"lse_rows \+ tile\.query_begin \+ row", "lse_rows + row"),
    ),
    "blackwell: a role keeps the lengths of the tile before": (
        RAGGED["blackwell"], Change(
            r"(run_mma[^~]*?while \(tiles\.next\(tile\)\) \{[^~]*?)take_lengths\(problem, tile\);",
            r"\1if (problem.key_rows == 0) take_lengths(problem, tile);",
        ),
    ),
    "blackwell: page of the first part": (PAGED["blackwell"], Change(r"rows\(kBK1 \+ row\)", "rows(row)")),
    "blackwell: page of the leader": (PAGED["blackwell"], Change(r"rows\(rank \* kLoadedRows \+ row\)", "rows(row)")),
    "blackwell: page of the block before": (
        PAGED["blackwell"], Change(r"page_before\(places\.keys, block\)", "places.keys.page"),
    ),
    "blackwell: row of another sequence": (
        PAGED["blackwell"], Change(r"(page_table_of\(problem, tile\.key_begin)\)", r"\1 ^ 1)"),
    ),
    "blackwell: whole pages": (PAGED["blackwell"], Change(r"min\(end - page_begin, kPageSize\)", "kPageSize")),
    "blackwell: bytes expected by every lane": (
        PAGED["blackwell"], Change(r"if \(threadIdx\.x % 32 == 0\)(\s+mbarrier_expect_leader)", r"\1"),
    ),
}  # fmt: skip
QUICK = (
    "hopper: values of a row later",
    "hopper: page of the first chunk",
    "blackwell: the peer's keys",
    "blackwell: page of the first part",
)
"""Made in every run, on few sequences, which show them; all of them with --many-seeds."""
SHOWN = {
    name: ShownMutant(keys, change, FEW if name in QUICK else HARD[name.partition(":")[0]])
    for name, (keys, change) in MUTANTS.items()
}
