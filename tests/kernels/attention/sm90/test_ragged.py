# ruff: noqa: E501 (a mutant is on the line of its name)
"""Ragged batches on Hopper: the list of tiles, and sequences that their neighbours do not reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fa4gen.emulator import Verdict
from tests.kernels.attention.launches import ShownMutant
from tests.kernels.attention.sequences import assert_isolated, failures
from tests.kernels.source_mutation import Change, Kernel, kernel_of, program_of, ptx_of

KEYS: dict[str, Any] = {"arch": "sm_90a", "depth": 64, "batching": "ragged", "mask": "causal"}
LENGTHS = ((3, 40), (70, 150), (1, 0), (200, 200), (0, 9))
SMALL = ((3, 20), (0, 4), (70, 150), (5, 33))


@pytest.mark.compile
def test_a_sequence_gives_the_same_bits_whatever_its_neighbours_hold() -> None:
    assert_isolated(kernel_of({**KEYS, "sinks": True}), LENGTHS, (1, 3))


PAGED = {"keys": "paged", "page_size": 64}


@pytest.mark.compile
@pytest.mark.parametrize(
    "keys",
    [
        {"mask": {"sliding_window": 40}},
        {"dtype": "fp8_e4m3", "kv_scale": "page"},
        {"dtype": "fp8_e4m3"},
    ],
    ids=["window", "scales of pages", "scales of heads"],
)
def test_a_sequence_with_pages_gives_the_same_bits_whatever_others_hold(
    keys: dict[str, Any],
) -> None:
    assert_isolated(kernel_of({**KEYS, **PAGED, **keys}), ((3, 20), (5, 200), (70, 150)), (1, 2))


def listed(kernel: Kernel, lengths: tuple[tuple[int, int], ...], room: int) -> np.ndarray:
    """The list of tiles, as the launch before the kernel writes it."""
    plan = kernel.plan
    offsets = [np.cumsum([0, *(pair[i] for pair in lengths)]).astype(np.int32) for i in (0, 1)]
    out = np.full((1 + room, 8), -1, np.int32)
    report = program_of(ptx_of(kernel)).launch(
        plan.tile_list.entry_point,
        block=plan.tile_list.threads,
        args=[*offsets, out, np.int32(len(lengths)), np.int32(room)],
    )
    assert report.verdict is Verdict.CLEAN
    return out


def most_blocks_seen(plan: Any, rows: int, keys: int) -> int:
    """Return the most blocks that a sequence's last tile sees."""
    end = plan.mask.bounds(keys - 1, keys)[1]
    return -(-max(0, min(end, keys)) // plan.BN) if rows else 0


@pytest.mark.compile
@pytest.mark.parametrize(
    "lengths",
    [
        LENGTHS,
        tuple((i % 3, i % 5) for i in range(70)),
        (*((1, 900 - 10 * i) for i in range(33)), (5000, 9000), (0, 0), (7, 7)),
        ((0, 0), (0, 1)),
    ],
    ids=["few", "many", "giant", "none"],
)
def test_the_list_has_an_entry_a_tile_and_the_longest_sequences_first(
    lengths: tuple[tuple[int, int], ...],
) -> None:
    kernel = kernel_of(KEYS)
    plan = kernel.plan
    tiles = [-(-rows // plan.BM) for rows, _ in lengths]
    begins = [np.cumsum([0, *(pair[i] for pair in lengths)]) for i in (0, 1)]
    out = listed(kernel, lengths, room=sum(tiles) + 3)
    assert out[0, 0] == sum(tiles)
    assert (out[1 + sum(tiles) :] == -1).all()
    entries = [tuple(int(x) for x in row) for row in out[1 : 1 + sum(tiles)]]
    order = list(dict.fromkeys(entry[0] for entry in entries))
    assert sorted(order) == [number for number, count in enumerate(tiles) if count]
    place = 0
    for number in order:
        rows, keys = lengths[number]
        own = (number, begins[0][number], rows, place, begins[1][number], keys, 0, 0)
        assert entries[place : place + tiles[number]] == [own] * tiles[number]
        place += tiles[number]
    work = [most_blocks_seen(plan, *lengths[number]) for number in order]
    longest = np.maximum.accumulate(work[::-1])[::-1]  # of this sequence and those after it
    assert all(after <= 1.125 * own for own, after in zip(work, longest, strict=True))


@pytest.mark.compile
def test_a_list_without_room_is_cut_short() -> None:
    out = listed(kernel_of(KEYS), ((1000, 1000), (5, 5)), room=3)
    assert out[0, 0] == 3
    assert (out[1:, 2] > 0).all()


MUTANTS = {
    "offset off by one": Change(r"sequence\.key_begin = key_offsets\[index\]", "sequence.key_begin = key_offsets[index] + 1"),
    "tail not clipped": Change(r"return kEndRow - count \+ row; \}", "return row; }"),
    "length of the sequence before": Change(
        r"sequence\.key_rows = key_offsets\[index \+ 1\] - key_offsets\[index\]",
        "sequence.key_rows = key_offsets[index] - key_offsets[index - (index > 0)]",
    ),
    "rows of another head": Change(r"tile\.head = first_head \+ within", "tile.head = first_head + 1 + within"),
    "last tile left out": Change(r"if \(index >= total \|\|", "if (index + 1 >= total ||"),
    "lengths of the first tile": Change(r"take_lengths\(problem, tile\);", "if (tiles.uses == 1) take_lengths(problem, tile);", 2),
}  # fmt: skip


PAGED: dict[str, Any] = {**KEYS, "keys": "paged", "page_size": 16}
PAGE_MUTANTS = {
    "page of the neighbour": Change(r"table\.entries\[key / kPageSize\]", "table.entries[(key / kPageSize) ^ (key / kPageSize < 2)]"),
    "row of another sequence": Change(r"page_table_of\(problem, tile\.key_begin\)", "page_table_of(problem, tile.key_begin ^ 1)"),
    "page of the block before": Change(r"rows\.look_up\(block - 1\)", "rows.page"),
    "whole pages": Change(r"min\(end - page_begin, kPageSize\)", "kPageSize"),
    "bytes expected late": Change(r"if \(lane == 0\) ring\.expect\(kKeyBytes\);\s+__syncwarp\(\);[^\n]*\n", ""),
}  # fmt: skip


QUICK = (
    "offset off by one",
    "tail not clipped",
    "lengths of the first tile",
    "row of another sequence",
    "page of the block before",
    "bytes expected late",
)
"""Made in every run; all of them with --many-seeds."""
SHOWN = {
    **{name: ShownMutant(KEYS, change, SMALL) for name, change in MUTANTS.items()},
    **{name: ShownMutant(PAGED, change, SMALL) for name, change in PAGE_MUTANTS.items()},
}


@pytest.mark.compile
def test_a_kernel_of_pages_is_right() -> None:
    assert failures(kernel_of(PAGED), SMALL) == []


COMBINED: dict[str, dict[str, Any]] = {
    "pair": {"batching": "ragged", "cta_group": 2},
    "pair, dynamic": {"batching": "ragged", "cta_group": 2, "scheduler": "dynamic"},
    "pair, pages": {"batching": "ragged", "cta_group": 2, "keys": "paged", "page_size": 64},
    "staged output, static": {
        "batching": "ragged", "epilogue": "tma_store", "scheduler": "static", "mask": "causal",
    },
    "chunks, capped, pages": {
        "batching": "ragged", "keys": "paged", "page_size": 32, "mask": {"chunked": 50},
        "softcap": 20.0,
    },
    "window, pages of dense batches": {
        "keys": "paged", "page_size": 16, "mask": {"sliding_window": 70}, "depth": 96,
    },
    "lengths, no lse": {"key_lengths": True, "lse": False, "depth": 128, "scheduler": "static"},
    "ragged queries, dense keys, sinks": {"batching": "ragged", "keys": "dense", "key_lengths": True, "sinks": True},
}  # fmt: skip


SOME = (
    "pair, dynamic",
    "staged output, static",
    "chunks, capped, pages",
    "ragged queries, dense keys, sinks",
)


@pytest.mark.emulate
@pytest.mark.parametrize(
    "name", [n if n in SOME else pytest.param(n, marks=pytest.mark.seeds) for n in COMBINED]
)
def test_what_combines_with_sequences_of_different_lengths(name: str) -> None:
    keys = COMBINED[name]
    lengths = SMALL if keys.get("batching") == "ragged" else ((9, 20), (9, 0), (9, 150), (9, 33))
    assert failures(kernel_of({"arch": "sm_90a", "depth": 64, **keys}), lengths) == []


@pytest.mark.compile
def test_a_ragged_kernel_is_right() -> None:
    assert failures(kernel_of(KEYS), SMALL) == []
