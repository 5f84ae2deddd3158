"""The blocks of keys that each tile of query rows sees, as lists that a kernel walks.

For masks that read tensors: which blocks are hidden, and which are seen as a whole, is known only
with the call. The mask is evaluated for every row and key, once; the lists serve all calls with the
same mask, tensors and sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fa4gen.expressions.places import Places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fa4gen.masks.mask import Mask

BLOCK_LISTS = {
    "block_ranges": "tiles, that with the most entries first: its number and its last block, 0 "
    "and 0, its entries, and those of each part of its rows; (batch or 1, query heads or 1, tiles, "
    "6, 2)",
    "block_entries": "blocks that a tile sees: number * 64, and two bits for each part of its rows",
    "row_keys": "the first key that a row sees, and one past the last; (batch or 1, query heads or "
    "1, query rows, 2)",
}
"""The int32 arrays of a call, by name; see ``list_blocks``."""
PARTS = 3
"""The most parts of a tile's rows: each has two bits in an entry."""
STATES = 4**PARTS
PAIRS = 6
"""The pairs of numbers of a tile."""
MOST_AT_ONCE = 1 << 24
"""Scores that are evaluated together."""
INT32_MAX = 2**31 - 1


class ListSizes(NamedTuple):
    """The sizes that the lists depend on, with the mask and its tensors."""

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


def list_shapes(mask: Mask, sizes: ListSizes) -> dict[str, tuple[int, ...]]:
    """Return the shapes of ``block_ranges`` and ``row_keys``."""
    by_batch, by_head = list_axes(mask)
    tiles = -(-sizes.query_rows // sizes.tile_rows)
    axes = sizes.batch if by_batch else 1, sizes.query_heads if by_head else 1
    return {
        "block_ranges": (*axes, tiles, PAIRS, 2),
        "row_keys": (*axes, sizes.query_rows, 2),
    }


def list_blocks(
    mask: Mask, sizes: ListSizes, tensors: Mapping[str, Any], xp: Any
) -> dict[str, Any]:
    """Return the arrays of BLOCK_LISTS by name, int32 arrays of ``xp`` (NumPy or CuPy).

    ``block_entries`` (entries) has the blocks of each tile in which any of its rows sees a key, in
    order: number * 64, plus 2^part for each part of the rows that sees every key of the block, and
    8 * 2^part for each of whose rows each sees every key of it that is between the row's first and
    last. A block that the keys end in is never seen as a whole.

    ``block_ranges``, (batch or 1, query heads or 1, tiles, 6, 2), has the tiles of each head, that
    with the most entries first: its number and that of the last block it sees; two zeros; where its
    entries begin and end; then of each part those from the first to the last that it sees something
    of. Missing parts, and parts that see nothing, have an empty range.

    ``row_keys``, (batch or 1, query heads or 1, query rows, 2), has the first key that a row sees
    and one past the last; zeros where it sees none.

    ``tensors``: those that the mask reads, by name, arrays of ``xp``. ValueError for more entries
    than int32 numbers.
    """
    shapes = list_shapes(mask, sizes)
    ranges = xp.zeros(shapes["block_ranges"], xp.int64)
    row_keys = xp.zeros(shapes["row_keys"], xp.int32)
    batches, heads, num_tiles = ranges.shape[:3]
    entries, count = [xp.zeros(0, xp.int64)], 0
    ranges[..., 0, 0] = xp.arange(num_tiles)
    if sizes.key_rows == 0:
        num_tiles = 0
    group = max(1, sizes.query_heads // max(1, sizes.key_heads))
    blocks = -(-sizes.key_rows // sizes.block_keys)
    step = max(1, MOST_AT_ONCE // (sizes.tile_rows * max(1, blocks) * sizes.block_keys))
    for batch in range(batches):
        for head in range(heads):
            for tile in range(0, num_tiles, step):
                tiles = min(step, num_tiles - tile)
                seen = _seen(mask, sizes, tensors, xp, (batch, head, head // group), tile, tiles)
                some_ranges, found = _entries(seen, xp)
                ranges[batch, head, tile : tile + tiles, 2:] = some_ranges + count
                ranges[batch, head, tile : tile + tiles, 0, 1] = seen.last_block
                rows = slice(tile * sizes.tile_rows, (tile + tiles) * sizes.tile_rows)
                row_keys[batch, head, rows] = seen.row_keys
                entries.append(found)
                count += int(found.size)
    if count > INT32_MAX:
        raise ValueError(f"{count} entries of blocks, at most {INT32_MAX}")
    longest = xp.argsort(ranges[..., 2, 0] - ranges[..., 2, 1], axis=-1)
    ranges = xp.take_along_axis(ranges, longest[..., None, None], axis=2)
    found = (ranges, xp.concatenate(entries), row_keys)
    return {name: one.astype(xp.int32) for name, one in zip(BLOCK_LISTS, found, strict=True)}


class Seen(NamedTuple):
    """The keys that tiles of a head see."""

    some: Any
    """(tiles, parts, blocks): whether rows see any key."""
    every: tuple[Any, Any]
    """(tiles, parts, blocks): whether all rows see all keys; and all between the row's first and
    last."""
    last_block: Any
    """(tiles): the last that rows see; 0 where there is none."""
    row_keys: Any
    """(rows, 2): the first key that each sees and one past the last."""


def _seen(
    mask: Mask,
    sizes: ListSizes,
    tensors: Mapping[str, Any],
    xp: Any,
    of_tile: tuple[int, int, int],
    first_tile: int,
    tiles: int,
) -> Seen:
    """Evaluate the mask for some tiles of a head."""
    batch, head, key_head = of_tile
    row = first_tile * sizes.tile_rows + xp.arange(tiles * sizes.tile_rows)[:, None]
    blocks = -(-sizes.key_rows // sizes.block_keys)
    key = xp.arange(blocks * sizes.block_keys)[None, :]
    position = row + (sizes.key_rows - sizes.query_rows)
    places = Places(position, key, row, head, key_head, batch, tensors)
    is_row, is_key = row < sizes.query_rows, key < sizes.key_rows
    sees = xp.broadcast_to(mask.sees_at(places, xp), (row.size, key.size)) & is_row & is_key
    first = sees.argmax(axis=1)
    end = xp.where(sees.any(axis=1), key.size - sees[:, ::-1].argmax(axis=1), 0)
    parts = sizes.tile_rows // sizes.part_rows
    shape = (tiles, parts, sizes.part_rows, blocks, sizes.block_keys)
    some = sees.reshape(shape).any(axis=(2, 4))
    every = (sees | ~is_row).reshape(shape).all(axis=(2, 4))
    is_outside = (key < first[:, None]) | (key >= end[:, None])
    within = (sees | is_outside).reshape(shape).all(axis=(2, 4))
    of_any = some.any(axis=1)
    last_block = xp.where(of_any.any(axis=1), blocks - 1 - of_any[:, ::-1].argmax(axis=1), 0)
    row_keys = xp.stack((first, end), axis=1)[: sizes.query_rows - int(row[0, 0])]
    return Seen(some, (some & every, some & within), last_block, row_keys)


def _entries(found: Seen, xp: Any) -> tuple[Any, Any]:
    """Return the ranges (tiles, 4, 2), counted from the first entry, and the entries."""
    some = found.some
    tiles, parts, blocks = some.shape
    seen = some.astype(xp.int64)
    listed = some.any(axis=1)
    counted = listed.astype(xp.int64)
    place = xp.cumsum(counted.ravel()).reshape(listed.shape)  # one past the block's, if listed
    bits = sum(
        (kind * (2 ** (PARTS * number + xp.arange(parts)))[None, :, None]).sum(axis=1)
        for number, kind in enumerate(found.every)
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
