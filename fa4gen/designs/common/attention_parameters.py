"""The parameters of an attention kernel: the same on every architecture, but for the output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common.model import Parameter, TileListPlan
from fa4gen.designs.common.rings import given_tile_bytes
from fa4gen.designs.common.score_text import GIVEN, given

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fa4gen.designs.common.attention_config import AttentionKeys, GivenBlocks
    from fa4gen.designs.common.attention_facts import AttentionFacts
    from fa4gen.key_sources import Table

MAP_TYPE = "const __grid_constant__ TensorMap"
TABLE_TYPE = "const int32* __restrict__"
LIST_THREADS = 1024
GIVEN_THREADS = 128
KEY_ROWS = {
    "dense": "key rows",
    "ragged": "key rows of all sequences",
    "paged": "keys that a row of the page table has room for",
}
GROUP_KEYS = "keys of a head that stay in L2 with their values, of as many heads; 1 is always right"
GIVEN_BLOCKS = {
    "block_offsets": "where each list begins among the numbers, and last where all end; (lists + "
    "1), lists by {axes} and block of {rows} query rows",
    "block_indices": "numbers of blocks of {keys} keys, in any order; -1 for none; (entries)",
}
"""The int32 arrays of a call that name its blocks, by name."""
LISTED_BLOCKS = "tiles, from the launch before: {bytes} bytes each, then the bits of their blocks"
TILE_LIST = "tiles, from the launch before: their number, and 32 bytes each from byte 32 on"


MOST_TILES = Parameter("num_tiles", "int32", "tiles that the list has room for")


def attention_parameters(
    plan: AttentionFacts,
    *out: Parameter,
    has_strides: bool = True,
    has_short_tiles: bool = False,
) -> tuple[Parameter, ...]:
    """Return the kernel's parameters in order; ``out``: those by which the output is written.

    ``has_strides``: the output's strides are parameters too. ``has_short_tiles``: tiles may leave
    the last warpgroup out.
    """
    config, ragged, tile_heads = plan.config, plan.is_ragged, plan.tile_heads
    axes = "rows of all sequences, heads, depth" if ragged else "batch, rows, heads, depth"
    rows = [
        Parameter("query_map", MAP_TYPE, f"query ({axes}), any strides"),
        Parameter("key_map", MAP_TYPE, "key"),
        Parameter("value_map", MAP_TYPE, "value"),
        *out,
    ]
    if config.lse:
        axes = "query heads, rows of all sequences" if ragged else "batch, query heads, query rows"
        meaning = f"log-sum-exp, ({axes})"
        rows.append(Parameter("lse", "float* __restrict__", meaning))
    if plan.has_descales:
        axis = "sequences" if ragged else "batch"
        rows += descale_parameters("query", axis=axis)
        of_keys = "pages" if plan.has_page_scales else axis
        rows += descale_parameters("key", "value", axis=of_keys)
    rows += declared_parameters(config)
    if config.lists_blocks:
        from fa4gen.masks.block_lists import BLOCK_LISTS  # of few kernels

        rows += [
            Parameter(f"{GIVEN}{name}", TABLE_TYPE, meaning)
            for name, meaning in BLOCK_LISTS.items()
        ]
    if plan.scheduler == "dynamic":
        meaning = "two zeros; zero again after the launch"
        rows.append(Parameter("tile_counter", "int32* __restrict__", meaning))
    if config.given_blocks is not None:
        rows.append(Parameter("tile_list", TABLE_TYPE, _listed_blocks(config)))
    elif ragged:
        rows.append(Parameter("tile_list", TABLE_TYPE, TILE_LIST))
    rows += key_parameters(config)
    rows += [
        Parameter("batch", "int32", "sequences" if ragged else "batches"),
        Parameter("query_heads", "int32", "query heads"),
        Parameter("heads_per_key_head", "int32", "query heads that share a key head"),
        Parameter("query_rows", "int32", "query rows" + (" of all sequences" if ragged else "")),
        Parameter("key_rows", "int32", KEY_ROWS[config.resolved_keys]),
    ]
    if has_strides:
        rows += [
            Parameter(f"out_{name}_stride", "int64", f"of the output's {name}, in elements")
            for name in (("row", "head") if ragged else ("batch", "row", "head"))
        ]
    rows.append(scale_parameter(config))
    if config.given_blocks is not None:
        return (*rows, MOST_TILES)
    if ragged:
        return (*rows, Parameter("group_keys", "int32", GROUP_KEYS))
    if has_short_tiles:
        meaning = "tiles a head that leave the last warpgroup out; 0 is always right"
        rows.append(Parameter("num_short_tiles", "int32", meaning))
    heads, divided = "a head", ""
    whose = "query heads"
    if tile_heads > 1:
        heads, divided = f"{tile_heads} heads, which share tiles", f" / {tile_heads}"
        whose = f"{tile_heads} times as many query heads"
    return (
        *rows,
        Parameter("tiles_per_head", "int32", f"tiles that cover the query rows of {heads}"),
        Parameter("num_tiles", "int32", f"tiles_per_head * query_heads{divided} * batch"),
        Parameter(
            "heads_per_group",
            "int32",
            f"{whose} whose keys and values stay in L2 together; 1 is always right",
        ),
    )


def descale_parameters(*names: str, axis: str) -> Iterable[Parameter]:
    """Yield the scales of tensors of fp8; ``axis``: the first of theirs."""
    for name in names:
        meaning = f"scale of the {name}, ({axis}, key heads); 1 where null"
        yield Parameter(f"{name}_descale", "const float* __restrict__", meaning)


def declared_parameters(config: AttentionKeys) -> Iterable[Parameter]:
    """Yield the addresses of sinks, and of tensors that the call passes by their names."""
    if config.sinks:
        meaning = "logit of each query head's sink, one more term of the softmax's sum"
        yield Parameter("sinks", "const float* __restrict__", meaning)
    for tensor in config.declared_tensors:
        c_type = "float" if tensor.dtype == "fp32" else "int32"
        meaning = f"{tensor.name}, ({tensor.axes})"
        yield Parameter(given(tensor), f"const {c_type}* __restrict__", meaning)
    for tensor in config.raised_tensors:
        meaning = f"largest logit so far, ({tensor.axes})"
        yield Parameter(given(tensor), "float* __restrict__", meaning)


def scale_parameter(config: AttentionKeys) -> Parameter:
    """Return the softmax scale, in powers of two where no score function comes before."""
    if config.resolved_score.FUNCTION:
        return Parameter("softmax_scale", "float", "softmax scale, above zero")
    return Parameter("softmax_scale_log2", "float", "softmax scale * log2(e), above zero")


def key_parameters(config: AttentionKeys) -> Iterable[Parameter]:
    """Yield the parameters for finding keys and values that are not in one place by row."""
    if config.resolved_keys == "ragged" or not config.key_source.clipped:
        return
    tables = {table.name: table for table in config.key_source.tables}
    if config.batching == "ragged" or config.given_blocks is not None:  # a list has the lengths
        del tables["key_lengths"]
    yield from _parameters(tables.values())
    what = "page" if config.resolved_keys == "paged" else "batch"
    if config.resolved_keys == "paged":
        yield Parameter("page_table_stride", "int32", "entries from one sequence to the next")
        yield Parameter("cache_pages", "int32", "pages of the cache; other entries stand for zeros")
    for name in ("key", "value"):
        meaning = f"rows from one {what} to the next, by the stride of a row"
        yield Parameter(f"{name}_page_rows", "int32", meaning)


def tile_list_plan(config: AttentionKeys, vendored_as: str, tile_rows: int) -> TileListPlan | None:
    """Return the launch that lists the tiles of a ragged batch; None where batches are dense.

    ``vendored_as``: the kernel's name in a vendored folder; empty elsewhere.
    """
    if config.given_blocks is not None:
        return _given_list_plan(config, config.given_blocks, vendored_as)
    if config.batching != "ragged":
        return None
    every = (*config.query_source.tables, *config.key_source.tables)
    tables = [table for table in every if table.name != "page_table"]
    bounded = config.resolved_keys != "ragged"
    return TileListPlan(
        entry_point=f"{vendored_as or f'fa4gen_{config.name}'}_list_tiles",
        threads=LIST_THREADS,
        parameters=(
            *_parameters(tables),
            Parameter("tile_list", "int32* __restrict__", TILE_LIST),
            Parameter("batch", "int32", "sequences"),
            *([Parameter("key_rows", "int32", KEY_ROWS[config.resolved_keys])] * bounded),
            Parameter("max_tiles", "int32", "entries that the list has room for"),
        ),
        tables=tuple(table.name for table in tables),
        bounded_keys=bounded,
        tile_rows=tile_rows,
    )


def given_block_names() -> tuple[str, ...]:
    """Return the kernel's names for the arrays that name a call's blocks."""
    return tuple(f"{GIVEN}{name}" for name in GIVEN_BLOCKS)


def _listed_blocks(config: AttentionKeys) -> str:
    return LISTED_BLOCKS.format(bytes=given_tile_bytes(config))


def _given_list_plan(config: AttentionKeys, blocks: GivenBlocks, vendored_as: str) -> TileListPlan:
    """Return the launch that turns lists of blocks into tiles with a bit for each block."""
    every = (*config.query_source.tables, *config.key_source.tables)
    tables = [table for table in every if table.name != "page_table"]
    ragged = config.batching == "ragged"
    axes = f"{blocks.heads} head" if ragged else f"batch, {blocks.heads} head"
    meanings = {
        name: meaning.format(axes=axes, rows=blocks.rows, keys=blocks.keys)
        for name, meaning in GIVEN_BLOCKS.items()
    }
    query_rows = "query rows of all sequences" if ragged else "query rows"
    return TileListPlan(
        entry_point=f"{vendored_as or f'fa4gen_{config.name}'}_list_blocks",
        threads=GIVEN_THREADS,
        parameters=(
            *(Parameter(f"{GIVEN}{name}", TABLE_TYPE, text) for name, text in meanings.items()),
            *_parameters(tables),
            Parameter("tile_list", "int32* __restrict__", _listed_blocks(config)),
            Parameter("batch", "int32", "sequences" if ragged else "batches"),
            Parameter("query_heads", "int32", "query heads"),
            Parameter("heads_per_key_head", "int32", "query heads that share a key head"),
            Parameter("query_rows", "int32", query_rows),
            Parameter("key_rows", "int32", KEY_ROWS[config.resolved_keys]),
            MOST_TILES,
        ),
        tables=tuple(table.name for table in tables),
        bounded_keys=True,
        tile_rows=blocks.rows,
        is_of_tiles=True,
    )


def _parameters(tables: Iterable[Table]) -> Iterable[Parameter]:
    for table in tables:
        yield Parameter(table.name, TABLE_TYPE, f"{table.meaning}; ({', '.join(table.axes)})")


def out_pointer(meaning: str) -> Parameter:
    """Return the address of an output of 16-bit elements."""
    return Parameter("out", "uint16* __restrict__", meaning)


def out_map(meaning: str) -> Parameter:
    """Return the tensor map of the output."""
    return Parameter("out_map", MAP_TYPE, meaning)
