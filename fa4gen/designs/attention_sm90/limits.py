"""The hardware's limits on a Hopper attention kernel, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.candidates import KEYS
from fa4gen.designs.attention_sm90.memory import attention_regions
from fa4gen.designs.attention_sm90.values import (
    CHUNK_KEYS,
    MIN_BLOCK,
    PROBABILITY_REGISTERS,
    ROW_REGISTERS,
    WARPGROUP_ROWS,
)
from fa4gen.designs.common import limits
from fa4gen.designs.common.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90.values import Values
    from fa4gen.designs.common.refusal import Changes, Refusal

TILE_KEYS = ("BM", "value_depth", "depth")


def exceeded_limits(values: Values) -> Iterator[Refusal]:
    """Yield each limit that the values exceed."""
    yield from _shared_memory(values)
    yield from limits.register_split(values, _smaller_in_every_way(values))
    yield from _consumer_registers(values)
    yield from _wgmma_width(values)


def _shared_memory(values: Values) -> Iterator[Refusal]:
    needed = dynamic_shared_bytes(attention_regions(values))
    warpgroups, stages = values.num_consumer_warpgroups, values.num_kv_stages
    data = warpgroups * values.query_bytes + stages * values.stage_bytes
    stage = (
        f"{stages} * 2 * {values.key_bytes}"
        if values.key_bytes == values.value_bytes
        else f"{stages} * ({values.key_bytes} + {values.value_bytes})"
    )
    yield from limits.shared_memory(
        needed,
        values.arch.shared_bytes,
        [
            f"{warpgroups} * {values.query_bytes} for queries",
            f"{stage} for stages of keys and values",
            f"{needed - data} for barriers, tiles and alignment",
        ],
        ("num_kv_stages", "BN", *TILE_KEYS),
        (_fewer_stages(values), _narrower_blocks(values), _fewer_warpgroups(values)),
        _smaller_in_every_way(values),
    )


def _consumer_registers(values: Values) -> Iterator[Refusal]:
    """Yield a fault where what must be in registers at once does not fit them.

    That is when Q.K is issued. What else a thread keeps is for the compiler to say.
    """
    depth, block = values.value_depth, values.BN
    chunks = min(values.num_pv_chunks_in_flight, values.num_chunks)
    each = PROBABILITY_REGISTERS
    yield from limits.consumer_registers(
        values,
        depth // 2 + block // 2 + each * chunks + ROW_REGISTERS,
        f"{depth} / 2 of output + {block} / 2 of scores + {each} * {chunks} of probabilities in "
        f"flight + {ROW_REGISTERS} of row state",
        ("BN", "num_pv_chunks_in_flight", "registers", *TILE_KEYS),
        limits.each_to_auto(values.config, KEYS),
        limits.back_to_auto(values.config, KEYS),
    )


def _wgmma_width(values: Values) -> Iterator[Refusal]:
    """Yield a fault for a matrix product that ptxas does not compile for this number of threads."""
    of_values = "depth" if values.config.value_depth == "auto" else "value_depth"
    products = (("Q.K", "BN", values.BN), ("P.V", of_values, values.value_depth))
    for name, key, columns in products:
        yield from limits.wgmma_width(
            values,
            columns,
            f"the wgmma of {name}, {WARPGROUP_ROWS} x {columns} ({key}),",
            f"width of {name}",
            ("BN", *TILE_KEYS) if key == "BN" else TILE_KEYS,
            (_narrower_blocks(values), _fewer_warpgroups(values)),
            _smaller_in_every_way(values),
            register_a=name == "P.V",
        )


def _narrower_blocks(values: Values) -> Iterator[Changes]:
    """Yield narrower and narrower blocks, with no more chunks in flight than each has."""
    asked = values.config.num_pv_chunks_in_flight
    for block in range(values.BN - CHUNK_KEYS, MIN_BLOCK - 1, -CHUNK_KEYS):
        chunks = block // CHUNK_KEYS
        if asked != "auto" and chunks < asked <= values.num_chunks:
            yield {"BN": block, "num_pv_chunks_in_flight": chunks}
        else:
            yield {"BN": block}


def _fewer_stages(values: Values) -> Iterator[Changes]:
    if values.config.num_kv_stages != "auto":
        for stages in range(values.num_kv_stages - 1, 0, -1):
            yield {"num_kv_stages": stages}


def _fewer_warpgroups(values: Values) -> Iterator[Changes]:
    for warpgroups in range(values.num_consumer_warpgroups - 1, 0, -1):
        yield {"BM": WARPGROUP_ROWS * warpgroups}


def _smaller_in_every_way(values: Values) -> Iterator[Changes]:
    """Yield changes of several keys at once, those that change the fewest first."""
    written = values.config.registers != "auto"
    # Where no block is narrower, one that is written may still be: of more registers.
    blocks = [*_narrower_blocks(values)] or [{"BN": block} for block in (64, 32, MIN_BLOCK)]
    yield from limits.in_every_way(
        [{"registers": "auto"}] if written else [],
        [*_fewer_warpgroups(values)],
        [fewer for fewer in _fewer_stages(values) if fewer["num_kv_stages"] in (1, 2)],
        blocks,
    )
