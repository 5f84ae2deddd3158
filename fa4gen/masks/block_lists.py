"""The blocks of keys that each tile of query rows sees, as lists that a kernel walks.

For masks that read tensors: which blocks are hidden, and which are seen as a whole, is known only
with the call. The mask is evaluated for every row and key, once; the lists serve all calls with the
same mask, tensors and sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fa4gen.expressions.places import Places

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fa4gen.masks.mask import Mask

BLOCK_LISTS = {
    "block_ranges": "entries of each tile and of each part of its rows; (batch or 1, query heads "
    "or 1, tiles, 4, 2)",
    "block_entries": "blocks that a tile sees: number * 64, and two bits for each part of its rows",
    "block_order": "tiles, that with the most entries first; (batch or 1, query heads or 1, tiles)",
}
"""What a call gets, int32, by name; see ``list_blocks``."""
PARTS = 3
"""Of the rows of a tile, at most: each has two bits in an entry."""
STATES = 4**PARTS
MOST_AT_ONCE = 1 << 24
"""Scores that are evaluated together."""
INT32_MAX = 2**31 - 1


class ListSizes(NamedTuple):
    """What the lists of a kernel and a problem depend on beside the mask and its tensors."""

    batch: int
    query_heads: int
    key_heads: int
    query_rows: int
    key_rows: int
    tile_rows: int
    part_rows: int
    """Rows of a part of a tile, each with its own range and its own bit: of a warpgroup."""
    block_keys: int


def list_axes(mask: Mask) -> tuple[bool, bool]:
    """Return whether lists differ from batch to batch, and from head to head."""
    return "batch" in mask.tile_names, bool({"head", "key_head"} & mask.tile_names)


def ranges_shape(mask: Mask, sizes: ListSizes) -> tuple[int, ...]:
    """Return the shape of ``block_ranges``."""
    by_batch, by_head = list_axes(mask)
    tiles = -(-sizes.query_rows // sizes.tile_rows)
    return sizes.batch if by_batch else 1, sizes.query_heads if by_head else 1, tiles, 4, 2


def list_blocks(
    mask: Mask, sizes: ListSizes, tensors: Mapping[str, Any], xp: Any
) -> dict[str, Any]:
    """Return the arrays of BLOCK_LISTS by name, int32 arrays of ``xp`` (NumPy or CuPy).

    ``block_entries`` (entries) has the blocks of each tile in which any of its rows sees a key, in
    order: number * 64, plus 2^part for each part of the rows that sees every key of the block, and
    8 * 2^part for each that sees every key from the first to the last that the mask's hull leaves
    its rows. A block that the keys end in is never seen as a whole. ``block_ranges``, (batch or 1,
    query heads or 1, tiles, 4, 2), says where entries begin and end: of the tile, then of each part
    those from the first to the last that it sees something of; of parts that it has not, nothing.
    ``block_order``, (batch or 1, query heads or 1, tiles), has the tiles, the longest first.

    ``tensors``: those that the mask reads, by name, arrays of ``xp``. ValueError for more entries
    than int32 numbers.
    """
    shape = ranges_shape(mask, sizes)
    ranges, entries, count = xp.zeros(shape, xp.int32), [], 0
    if sizes.key_rows == 0 or 0 in shape:
        return _named(ranges, xp.zeros(0, xp.int32), xp)
    group = max(1, sizes.query_heads // max(1, sizes.key_heads))
    blocks = -(-sizes.key_rows // sizes.block_keys)
    step = max(1, MOST_AT_ONCE // (sizes.tile_rows * blocks * sizes.block_keys))
    for batch in range(shape[0]):
        for head in range(shape[1]):
            for tile in range(0, shape[2], step):
                tiles = min(step, shape[2] - tile)
                some, *every = _seen(
                    mask, sizes, tensors, xp, (batch, head, head // group), tile, tiles
                )
                some_ranges, found = _entries(some, every, xp)
                ranges[batch, head, tile : tile + tiles] = some_ranges + count
                entries.append(found)
                count += int(found.size)
    if count > INT32_MAX:
        raise ValueError(f"{count} entries of blocks, at most {INT32_MAX}")
    return _named(ranges, xp.concatenate(entries).astype(xp.int32), xp)


def _named(ranges: Any, entries: Any, xp: Any) -> dict[str, Any]:
    counts = ranges[..., 0, 1] - ranges[..., 0, 0]
    order = xp.argsort(-counts, axis=-1).astype(xp.int32)
    return dict(zip(BLOCK_LISTS, (ranges, entries, order), strict=True))


def _seen(
    mask: Mask,
    sizes: ListSizes,
    tensors: Mapping[str, Any],
    xp: Any,
    of_tile: tuple[int, int, int],
    first_tile: int,
    tiles: int,
) -> tuple[Any, Any, Any]:
    """Return for (tiles, parts, blocks) whether rows see some key, all, all within the hull."""
    import numpy as np  # not with the module: rendering does without

    batch, head, key_head = of_tile
    of_rows = first_tile * sizes.tile_rows + np.arange(tiles * sizes.tile_rows)[:, None]
    row, shift = xp.asarray(of_rows), sizes.key_rows - sizes.query_rows
    blocks = -(-sizes.key_rows // sizes.block_keys)
    key = xp.arange(blocks * sizes.block_keys)[None, :]
    places = Places(row + shift, key, row, head, key_head, batch, tensors)
    sees = xp.broadcast_to(mask.sees_at(places, xp), (row.size, key.size))
    is_row, is_key = row < sizes.query_rows, key < sizes.key_rows
    parts = sizes.tile_rows // sizes.part_rows
    shape = (tiles, parts, sizes.part_rows, blocks, sizes.block_keys)
    some = (sees & is_row & is_key).reshape(shape).any(axis=(2, 4))
    every = ((sees & is_key) | ~is_row).reshape(shape).all(axis=(2, 4))
    first, end = (xp.asarray(one) for one in mask.bounds(of_rows + shift, sizes.key_rows))
    is_outside = (key < first) | (key >= end) | ~is_key | ~is_row
    within = (sees | is_outside).reshape(shape).all(axis=(2, 4))
    return some, some & every, some & within


def _entries(some: Any, every: Sequence[Any], xp: Any) -> tuple[Any, Any]:
    """Return the ranges (tiles, 4, 2), counted from the first entry, and the entries."""
    tiles, parts, blocks = some.shape
    seen = some.astype(xp.int64)
    listed = some.any(axis=1)
    counted = listed.astype(xp.int64)
    place = xp.cumsum(counted.ravel()).reshape(listed.shape)  # one past the block's, if listed
    bits = sum(
        (kind * (2 ** (PARTS * number + xp.arange(parts)))[None, :, None]).sum(axis=1)
        for number, kind in enumerate(every)
    )
    entries = (xp.arange(blocks)[None, :] * STATES + bits)[listed]
    ends = place[:, -1]
    begins = ends - counted.sum(axis=1)
    ranges = xp.zeros((tiles, 1 + PARTS, 2), xp.int64)
    ranges[:, 0, 0], ranges[:, 0, 1] = begins, ends
    tile = xp.arange(tiles)
    for part in range(PARTS):
        if part >= parts:
            ranges[:, 1 + part] = begins[:, None]
            continue
        own, sees = seen[:, part], some[:, part].any(axis=1)
        first = place[tile, own.argmax(axis=1)] - 1
        end = place[tile, blocks - 1 - own[:, ::-1].argmax(axis=1)]
        ranges[:, 1 + part, 0] = xp.where(sees, first, begins)
        ranges[:, 1 + part, 1] = xp.where(sees, end, begins)
    return ranges, entries
