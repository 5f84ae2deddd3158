"""The order of scales in memory, against the place of each scale in tensor memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.errors import ArgumentError
from fa4gen.scales import arrange, restore


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 300), blocks=st.integers(1, 11), seed=st.integers(0, 99))
def test_each_scale_is_where_the_hardware_looks(rows: int, blocks: int, seed: int) -> None:
    scales = np.random.default_rng(seed).integers(1, 256, (rows, blocks), np.uint8)
    flat = arrange(scales).reshape(-1)
    row_atoms, block_atoms = -(-rows // 128), -(-blocks // 4)
    assert flat.size == 512 * row_atoms * block_atoms
    expected = np.zeros_like(flat)
    for row in range(rows):
        for block in range(blocks):
            atom = row // 128 * block_atoms + block // 4
            lane, column = row % 32, row % 128 // 32
            expected[atom * 512 + lane * 16 + column * 4 + block % 4] = scales[row, block]
    np.testing.assert_array_equal(flat, expected)
    np.testing.assert_array_equal(restore(arrange(scales), rows, blocks), scales)


def test_leading_axes_stay() -> None:
    scales = np.arange(2 * 3 * 130 * 5, dtype=np.uint32).astype(np.uint8).reshape(2, 3, 130, 5)
    arranged = arrange(scales)
    assert arranged.shape == (2, 3, 2, 2, 32, 4, 4)
    np.testing.assert_array_equal(arranged[1, 2], arrange(scales[1, 2]))
    np.testing.assert_array_equal(restore(arranged, 130, 5), scales)


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match=r"expected uint8 .*, got float32 \(4, 4\)"):
        arrange(np.zeros((4, 4), np.float32))
    with pytest.raises(ArgumentError, match=r"expected \(\.\.\., 2, 1, 32, 4, 4\) for 200 rows"):
        restore(arrange(np.zeros((100, 4), np.uint8)), 200, 4)


def test_no_blocks_of_k_are_no_atoms() -> None:
    arranged = arrange(np.zeros((5, 0), np.uint8))
    assert arranged.shape == (1, 0, 32, 4, 4)
    assert restore(arranged, 5, 0).shape == (5, 0)


def test_each_group_begins_an_atom() -> None:
    scales = np.random.default_rng(0).integers(1, 255, (300, 5)).astype(np.uint8)
    row_offsets = np.array([2, 132, 132, 133, 290], np.int32)
    arranged = arrange(scales, row_offsets)
    assert arranged.shape == (300 // 128 + 4, 2, 32, 4, 4)
    first = 0
    for begin, end in pairwise(row_offsets):
        atoms = arrange(scales[begin:end])
        np.testing.assert_array_equal(arranged[first:][: len(atoms)], atoms)
        first += len(atoms)
    assert not arranged[first:].any()
