"""Lists of blocks: no block is left out that a row sees, and none is called full that is not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fa4gen.expressions.places import Places
from fa4gen.masks import block_lists
from fa4gen.masks.block_lists import ListSizes, list_blocks, list_shapes
from fa4gen.masks.expression import parse_mask

MASKS = [
    "key <= query and document[batch, key] == document[batch, query]",
    "document[batch, key] != document[batch, query]",
    "seen[head, query // 3, key // 4] != 0",
    "seen[key_head, row // 5, key // 2] != 0 and key <= query",
    "key < document[batch, 0]",
    "(query - key) // 4 % 3 == 0",
    "key >= 0 and (query < 0 or key % 7 != 6)",
]


def drawn(rng: np.random.Generator, sizes: ListSizes) -> dict[str, np.ndarray]:
    begins = rng.random((sizes.batch, sizes.key_rows)) < rng.choice([0.05, 0.3])
    return {
        "document": np.cumsum(begins, axis=1).astype(np.int32),
        "seen": (rng.random((sizes.query_heads, 9, 9)) < rng.choice([0.1, 0.5, 0.95])).astype(
            np.int32
        ),
    }


def seen_everywhere(text: str, sizes: ListSizes, tensors, batch: int, head: int) -> np.ndarray:
    row, key = np.arange(sizes.query_rows)[:, None], np.arange(sizes.key_rows)[None, :]
    key_head = head // (sizes.query_heads // sizes.key_heads)
    query = row + sizes.key_rows - sizes.query_rows
    places = Places(query, key, row, head, key_head, batch, tensors)
    sees = parse_mask(text).sees_at(places, np)
    return np.broadcast_to(sees, (sizes.query_rows, sizes.key_rows))


@settings(deadline=None)
@given(
    text=st.sampled_from(MASKS),
    seed=st.integers(0, 2**32 - 1),
    batch=st.integers(1, 2),
    key_heads=st.integers(1, 2),
    group=st.integers(1, 2),
    rows=st.integers(1, 40),
    keys=st.integers(1, 40),
    parts=st.integers(1, 3),
    part_rows=st.integers(1, 5),
    block_keys=st.integers(1, 9),
    at_once=st.sampled_from([1, 300, 1 << 24]),
)
def test_the_lists_are_those_of_the_mask_evaluated_everywhere(
    text, seed, batch, key_heads, group, rows, keys, parts, part_rows, block_keys, at_once
) -> None:
    sizes = ListSizes(
        batch, key_heads * group, key_heads, rows, keys, parts * part_rows, part_rows, block_keys
    )
    tensors = drawn(np.random.default_rng(seed), sizes)
    mask = parse_mask(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_lists, "MOST_AT_ONCE", at_once)
        lists = list_blocks(mask, sizes, tensors, np)
    assert list(lists) == list(block_lists.BLOCK_LISTS)
    ranges, entries, row_keys = lists.values()
    assert ranges.dtype == entries.dtype == row_keys.dtype == np.int32
    shapes = list_shapes(mask, sizes)
    assert (ranges.shape, row_keys.shape) == (shapes["block_ranges"], shapes["row_keys"])
    assert ranges.shape[3:] == (6, 2)
    assert (np.sort(ranges[..., 0, 0], axis=-1) == np.arange(ranges.shape[2])).all()
    assert not ranges[..., 1, :].any()
    assert (np.diff(ranges[..., 2, 1] - ranges[..., 2, 0], axis=-1) <= 0).all()
    for b in range(batch):
        for h in range(sizes.query_heads):
            sees = seen_everywhere(text, sizes, tensors, b, h)
            of_head = min(b, ranges.shape[0] - 1), min(h, ranges.shape[1] - 1)
            for of_row, ends in zip(sees, row_keys[of_head], strict=True):
                seen = np.flatnonzero(of_row)
                assert tuple(ends) == ((seen[0], seen[-1] + 1) if seen.size else (0, 0))
            for of_tile in ranges[of_head]:
                check_tile(sizes, sees, of_tile, entries)


def check_tile(sizes, sees, numbers, entries) -> None:
    (tile, last_block), ranges = numbers[0], numbers[2:]
    begin, end = ranges[0]
    assert 0 <= begin <= end <= len(entries)
    numbers = entries[begin:end] // 64
    assert list(numbers) == sorted(set(numbers))
    assert last_block == (numbers[-1] if numbers.size else 0)
    in_tile = sees[tile * sizes.tile_rows :][: sizes.tile_rows]
    for number in range(-(-sizes.key_rows // sizes.block_keys)):
        keys = slice(number * sizes.block_keys, (number + 1) * sizes.block_keys)
        assert in_tile[:, keys].any() == (number in numbers)
    for part in range(3):
        first, last = ranges[1 + part]
        assert begin <= first <= last <= end
        rows = in_tile[part * sizes.part_rows :][: sizes.part_rows]
        if part * sizes.part_rows >= sizes.tile_rows:
            assert first == last
            continue
        some = [
            i
            for i in range(begin, end)
            if rows[:, entries[i] // 64 * sizes.block_keys :][:, : sizes.block_keys].any()
        ]
        assert (first, last) == ((some[0], some[-1] + 1) if some else (first, first))
        for i in range(begin, end):
            start = entries[i] // 64 * sizes.block_keys
            block = rows[:, start : start + sizes.block_keys]
            is_full = bool(rows.size) and block.all() and start + sizes.block_keys <= sees.shape[1]
            assert bool(entries[i] >> part & 1) == is_full
            untested = True
            for whole, of_row in zip(rows, block, strict=True):
                seen = np.flatnonzero(whole)
                if seen.size:
                    low, high = np.clip((seen[0] - start, seen[-1] + 1 - start), 0, None)
                    untested = untested and of_row[low:high].all()
            assert bool(entries[i] >> 3 + part & 1) == (untested and block.any())
            assert bool(entries[i] >> 3 + part & 1) >= is_full


def test_a_list_for_each_head_and_batch_only_where_the_mask_names_them() -> None:
    sizes = ListSizes(2, 6, 3, 100, 200, 64, 64, 16)
    wanted = {"key % 3 == 0": (1, 1), MASKS[0]: (2, 1), MASKS[2]: (1, 6), MASKS[3]: (1, 6)}
    for text, axes in wanted.items():
        shapes = list_shapes(parse_mask(text), sizes)
        assert shapes == {"block_ranges": (*axes, 2, 6, 2), "row_keys": (*axes, 100, 2)}


@pytest.mark.parametrize(("rows", "keys"), [(0, 5), (5, 0), (0, 0)])
def test_no_rows_or_no_keys_are_no_entries(rows, keys) -> None:
    sizes = ListSizes(1, 1, 1, rows, keys, 2, 2, 2)
    ranges, entries, row_keys = list_blocks(parse_mask("key % 3 == 0"), sizes, {}, np).values()
    assert ranges.shape == (1, 1, -(-rows // 2), 6, 2)
    assert not ranges[..., 1:, :].any()
    assert (ranges[..., 0, 0] == np.arange(ranges.shape[2])).all()
    assert entries.shape == (0,)
    assert row_keys.shape == (1, 1, rows, 2)
    assert not row_keys.any()


def test_lists_are_made_by_a_library_that_clips_arrays_only() -> None:
    def clip(array, least, most):
        return array.clip(least, most)  # as CuPy does

    like_cupy = SimpleNamespace(**{**vars(np), "clip": clip})
    sizes = ListSizes(2, 2, 1, 9, 12, 4, 2, 3)
    tensors = drawn(np.random.default_rng(3), sizes)
    for text in MASKS:
        wanted = list_blocks(parse_mask(text), sizes, tensors, np)
        found = list_blocks(parse_mask(text), sizes, tensors, like_cupy)
        assert all(np.array_equal(wanted[name], found[name]) for name in wanted)
