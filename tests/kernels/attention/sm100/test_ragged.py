# ruff: noqa: E501 (a mutant is on the line of its name)
"""Ragged batches and pages on Blackwell: what is right, what combines, and mutants that verify reports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.attention.launches import ShownMutant
from tests.kernels.attention.sequences import assert_isolated, failures
from tests.kernels.source_mutation import Change, kernel_of

SMALL_TILES: dict[str, Any] = {
    "arch": "sm_100a",
    "depth": 64,
    "BM": 128,
    "BN": 64,
    "mask": "causal",
}
RAGGED: dict[str, Any] = {**SMALL_TILES, "batching": "ragged"}
PAGED: dict[str, Any] = {**RAGGED, "keys": "paged", "page_size": 16}
PAIR: dict[str, Any] = {**PAGED, "cta_group": 2, "scheduler": "dynamic"}
LENGTHS = ((3, 20), (0, 4), (70, 150), (5, 0), (5, 33))
SAME_ROWS = ((9, 20), (9, 0), (9, 150), (9, 33))
"""For dense queries."""
GIANT = ((1, 1), (2, 3), (300, 450), (1, 70), (0, 0), (4, 64))


@pytest.mark.compile
def test_a_sequence_gives_the_same_bits_whatever_its_neighbours_hold() -> None:
    assert_isolated(kernel_of(PAGED), ((3, 20), (40, 70), (5, 33)), (1,), kinds=1)


@pytest.mark.seeds
@pytest.mark.parametrize(
    "keys",
    [{"batching": "ragged"}, {"batching": "ragged", "keys": "paged", "page_size": 64, "cta_group": 2}],
    ids=["ragged", "paged pair"],
)  # fmt: skip
def test_whole_tiles_are_isolated(keys: dict[str, Any]) -> None:
    assert_isolated(kernel_of({"mask": "causal", **keys}), GIANT, (0, 2, 3))


@pytest.mark.compile
@pytest.mark.parametrize("keys", [RAGGED, PAIR], ids=["ragged", "paged pair"])
def test_hard_lengths_are_right(keys: dict[str, Any]) -> None:
    assert failures(kernel_of(keys), LENGTHS) == []


@pytest.mark.seeds
@pytest.mark.parametrize("keys", [RAGGED, PAGED, PAIR], ids=["ragged", "paged", "paged pair"])
def test_a_giant_among_dwarfs_is_right(keys: dict[str, Any]) -> None:
    assert failures(kernel_of(keys), GIANT) == []


COMBINED: dict[str, dict[str, Any]] = {
    "fp8, pages": {**PAGED, "dtype": "fp8_e4m3", "page_size": 64},
    "window, sinks, lengths, no lse": {
        **SMALL_TILES, "key_lengths": True, "lse": False, "mask": {"sliding_window": 70},
        "sinks": True, "scheduler": "static",
    },
}  # fmt: skip
MORE: dict[str, dict[str, Any]] = {
    "values of 128, own staging": {"batching": "ragged", "depth": 192, "value_depth": 128, "output_staging": "own"},
    "window, sinks, pages": {"batching": "ragged", "keys": "paged", "page_size": 64, "mask": {"sliding_window": 70}, "sinks": True},
    "pair": {"batching": "ragged", "cta_group": 2},
    "pair, pages of 64": {"batching": "ragged", "cta_group": 2, "keys": "paged", "page_size": 64},
    "pair, pages of 16, dynamic": {"batching": "ragged", "cta_group": 2, "keys": "paged", "page_size": 16, "scheduler": "dynamic", "depth": 128},
    "pair, fp8, static": {"batching": "ragged", "cta_group": 2, "keys": "paged", "page_size": 32, "dtype": "fp8_e4m3", "depth": 128, "scheduler": "static"},
    "chunks, capped, pages, depth 256": {
        "batching": "ragged", "keys": "paged", "page_size": 32, "mask": {"chunked": 50},
        "softcap": 20.0, "depth": 256, "scheduler": "static",
    },
    "dense batches in pages": {"keys": "paged", "page_size": 256, "depth": 96, "mask": {"sliding_window": 70}},
    "ragged queries, dense keys, sinks": {"batching": "ragged", "keys": "dense", "key_lengths": True, "sinks": True},
    "fused ring": {"batching": "ragged", "keys": "paged", "page_size": 16, "kv_ring": "fused", "BM": 128, "BN": 96},
    "pair of lengths": {"key_lengths": True, "cta_group": 2, "mask": "causal", "depth": 128},
}  # fmt: skip


def check_combined(keys: dict[str, Any]) -> None:
    lengths = LENGTHS if keys.get("batching") == "ragged" else SAME_ROWS
    assert failures(kernel_of({"depth": 64, **keys}), lengths) == []


@pytest.mark.emulate
@pytest.mark.parametrize("keys", COMBINED.values(), ids=COMBINED)
def test_what_combines_with_sequences_of_different_lengths(keys: dict[str, Any]) -> None:
    check_combined(keys)


@pytest.mark.seeds
@pytest.mark.parametrize("keys", MORE.values(), ids=MORE)
def test_what_else_combines(keys: dict[str, Any]) -> None:
    check_combined(keys)


MUTANTS: dict[str, tuple[dict[str, Any], Change]] = {
    "offset off by one": (RAGGED, Change(r"sequence\.key_begin = key_offsets\[index\]", "sequence.key_begin = key_offsets[index] + 1")),
    "tail not clipped": (RAGGED, Change(r"return kEndRow - count \+ row; \}", "return row; }")),
    "rows of the sequence before": (RAGGED, Change(
        r"sequence\.key_rows = key_offsets\[index \+ 1\] - key_offsets\[index\]",
        "sequence.key_rows = key_offsets[index] - key_offsets[index - (index > 0)]",
    )),
    "output past the end": (RAGGED, Change(
        r"(?s)(tma_store_clipped\(map, source.*?)rows\.coordinate\(row\), head, rows\.place\(\)",
        r"\1rows.coordinate(row) - 128, head, rows.place() + 128",
    )),
    "log-sum-exp past the end": (RAGGED, Change(r"row < problem\.query_rows\)", "row <= problem.query_rows)")),
    "log-sum-exp of another sequence": (RAGGED, Change(r"lse_rows \+ tile\.query_begin \+ row", "lse_rows + row")),
    "zeros past the end": (RAGGED, Change(r"min\(kBM, tile\.query_rows - tile\.first_row\)", "kBM")),
    "softmax takes lengths too early": (RAGGED, Change(
        r"Tile tile;\n  while \(tiles\.next\(tile\)\) \{\n    take_lengths\(problem, tile\);\n    const int32 first_row",
        "Tile tile{};\n  while (take_lengths(problem, tile), tiles.next(tile)) {\n    const int32 first_row",
    )),
    "products take lengths too early": (RAGGED, Change(
        r"(take_lengths\(problem, tile\);)(\s+const BlockRange blocks[^;]*;)(\n\s+const int32 num_blocks)", r"\2\1\3",
    )),
    "correction takes lengths too early": (RAGGED, Change(
        r"(take_lengths\(problem, tile\);)(\s+const BlockRange blocks[^;]*;)(\n\s+if \(blocks\.empty\(\)\) \{)", r"\2\1\3",
    )),
    "loader takes no lengths": (RAGGED, Change(r"(?s)(if \(tile\.first_row < 0\) break;\n)    take_lengths\(problem, tile\);\n", r"\1")),
    "page of the neighbour": (PAGED, Change(r"table\.entries\[key / kPageSize\]", "table.entries[(key / kPageSize) ^ (key / kPageSize < 2)]")),
    "row of another sequence": (PAGED, Change(r"page_table_of\(problem, tile\.key_begin\)", "page_table_of(problem, tile.key_begin ^ 1)")),
    "page of the block before": (PAGED, Change(r"key_rows\.look_up\(block - 1\)", "key_rows.page")),
    "whole pages": (PAGED, Change(r"min\(end - page_begin, kPageSize\)", "kPageSize")),
    "bytes expected by every lane": (PAGED, Change(r"if \(expects\) mbarrier_expect_leader", "mbarrier_expect_leader")),
    "every lane hands out a tile": (PAGED, Change(r"if \(is_first\) \{([^}]*write_tile)", r"{\1")),
    "pages of values as of keys": (PAIR, Change(r"value_rows\.page = value_rows\.look_up\(blocks\.end - 1\)", "value_rows.page = key_rows.page")),
    "the peer has no lengths": (PAIR, Change(r"(?s)store_shared_cluster\(map_to_cta\(slot, 1\) \+ 16.*?;", "")),
}  # fmt: skip
QUICK = (
    "tail not clipped",
    "softmax takes lengths too early",
    "row of another sequence",
    "the peer has no lengths",
)
"""Made in every run; all of them with --many-seeds."""
SHOWN = {name: ShownMutant(keys, change, LENGTHS) for name, (keys, change) in MUTANTS.items()}
