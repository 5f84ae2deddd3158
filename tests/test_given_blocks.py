"""Lists of blocks from masks, indices and scores, as a call takes them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from fa4gen import given_blocks
from fa4gen.errors import ArgumentError


def sets_of(lists) -> list[set[int]]:
    """Return the blocks that each list names."""
    offsets, indices = lists["block_offsets"], lists["block_indices"]
    assert offsets.dtype == indices.dtype == np.int32
    assert (indices.ndim, offsets[-1]) == (1, indices.size)
    return [
        {int(one) for one in indices[begin:end] if one >= 0} for begin, end in pairwise(offsets)
    ]


def test_a_mask_names_what_is_not_zero() -> None:
    seen = np.random.default_rng(1).random((2, 3, 4, 5)) < 0.4
    expected = [set(map(int, np.flatnonzero(row))) for row in seen.reshape(-1, 5)]
    assert sets_of(given_blocks.from_mask(seen)) == expected
    assert sets_of(given_blocks.from_mask(2 * seen.astype(np.int8))) == expected


def test_indices_are_taken_as_they_are() -> None:
    indices = np.array([[[3, 1, -1], [0, 0, 2]]], np.int64)
    lists = given_blocks.from_indices(indices)
    assert lists["block_offsets"].tolist() == [0, 3, 6]
    assert lists["block_indices"].tolist() == [3, 1, -1, 0, 0, 2]


@pytest.mark.parametrize("most", [1, 3, 7, 9])
def test_the_best_scores_are_named(most) -> None:
    scores = np.random.default_rng(2).permutation(42).reshape(2, 3, 7).astype(np.float32)
    scores[0, 0, 2:] = -np.inf
    found = sets_of(given_blocks.from_scores(scores, most))
    for row, named in zip(scores.reshape(-1, 7), found, strict=True):
        best = sorted(np.flatnonzero(row > -np.inf), key=lambda block, row=row: -row[block])
        assert named == set(map(int, best[:most]))


def test_no_block_is_refused() -> None:
    with pytest.raises(ArgumentError, match="most"):
        given_blocks.from_scores(np.zeros((1, 4)), 0)


def test_more_entries_than_int32_counts_are_refused() -> None:
    indices = np.broadcast_to(np.int32(0), (2**16, 2**15))
    with pytest.raises(ArgumentError, match="2147483648 entries"):
        given_blocks.from_indices(indices)
