"""The hardware's limits on a Hopper attention kernel: what is proved not to fit, and ways to fit.

Only what cannot work whatever the compiler does is refused: what merely may spill is left to the
compiler, whose log is checked.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.memory import attention_regions, dynamic_shared_bytes
from fa4gen.designs.attention_sm90.rules import with_warpgroups
from fa4gen.designs.attention_sm90.values import CHUNK_KEYS, MIN_BLOCK, WARPGROUP_ROWS
from fa4gen.designs.shared.refusal import Changes, Fault
from fa4gen.designs.shared.roles import (
    WARPGROUP,
    nearest_split,
    register_pool,
    registers_at_entry,
    wgmma_registers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90.values import Values

TILE_KEYS = ("BM", "num_consumer_warpgroups", "depth")
ROW_STATE_REGISTERS = 4
"""Maximum and sum of a thread's two rows: never in fewer registers."""


def exceeded_limits(values: Values) -> Iterator[Fault]:
    """Yield each limit that the values exceed."""
    yield from _shared_memory(values)
    yield from _register_split(values)
    yield from _consumer_registers(values)
    yield from _wgmma_width(values)


def _shared_memory(values: Values) -> Iterator[Fault]:
    needed = dynamic_shared_bytes(attention_regions(values))
    available = values.arch.shared_bytes
    if needed <= available:
        return
    warpgroups, stages = values.num_consumer_warpgroups, values.num_kv_stages
    data = warpgroups * values.query_bytes + 2 * stages * values.block_bytes
    yield Fault(
        kind="shared memory",
        message=f"shared memory: {warpgroups} * {values.query_bytes} for queries + {stages} * 2 * "
        f"{values.block_bytes} for stages of keys and values + {needed - data} for barriers, tiles "
        f"and alignment = {needed} bytes, but a CTA has {available}",
        keys=("num_kv_stages", "BN", *TILE_KEYS),
        remedies=(_fewer_stages(values), _narrower_blocks(values), _fewer_warpgroups(values)),
        last_resort=_smaller_in_every_way(values),
    )


def _register_split(values: Values) -> Iterator[Fault]:
    """Yield a fault for a split that setmaxnreg never brings about: it would hang."""
    arch, warpgroups, split = values.arch, values.num_consumer_warpgroups, values.registers
    nearest = nearest_split(arch, split, warpgroups)
    if nearest == split:
        return
    entry = registers_at_entry(arch, warpgroups)
    pool = register_pool(arch, warpgroups)
    if split.total(warpgroups) > pool:
        message = (
            f"registers: {WARPGROUP} * ({split.producer} + {warpgroups} * {split.consumer}) = "
            f"{split.total(warpgroups)} for all roles, but the launch has {pool}"
        )
    else:
        message = (
            f"registers: the launch gives every thread {entry}, of which the producer can only "
            f"give up some (got {split.producer}) and a consumer only take more (got "
            f"{split.consumer})"
        )
    corrected = {"producer": nearest.producer, "consumer": nearest.consumer}
    yield Fault(
        kind="register split",
        message=message,
        keys=("registers",),
        remedies=([{"registers": corrected}], [{"registers": "auto"}]),
        last_resort=_smaller_in_every_way(values),
    )


def _consumer_registers(values: Values) -> Iterator[Fault]:
    """Yield a fault where what must be in registers when Q.K is issued does not fit them."""
    depth, block, chunks = values.config.depth, values.BN, values.num_pv_chunks_in_flight
    chunks = min(chunks, values.num_chunks)
    needed = depth // 2 + block // 2 + 4 * chunks + ROW_STATE_REGISTERS
    split = nearest_split(values.arch, values.registers, values.num_consumer_warpgroups)
    available = min(split.consumer, values.arch.max_registers_per_thread)
    if needed <= available:
        return
    yield Fault(
        kind="consumer registers",
        message=f"registers: a consumer thread holds {depth} / 2 of output + {block} / 2 of scores "
        f"+ 4 * {chunks} of probabilities in flight + {ROW_STATE_REGISTERS} of row maxima and sums "
        f"= {needed}, but has {available}",
        keys=("BN", "num_pv_chunks_in_flight", "registers", *TILE_KEYS),
        remedies=(
            _narrower_blocks(values),
            ({"num_pv_chunks_in_flight": fewer} for fewer in range(chunks - 1, -1, -1)),
            _fewer_warpgroups(values),
        ),
        last_resort=_smaller_in_every_way(values),
    )


def _wgmma_width(values: Values) -> Iterator[Fault]:
    """Yield a fault for a matrix product that ptxas does not compile for so many threads."""
    warpgroups, block, depth = values.num_consumer_warpgroups, values.BN, values.config.depth
    entry = registers_at_entry(values.arch, warpgroups)
    products = (
        ("Q.K", "BN", block, wgmma_registers(block, register_a=False)),
        ("P.V", "depth", depth, wgmma_registers(depth, register_a=True)),
    )
    for name, key, columns, needed in products:
        if needed <= entry:
            continue
        yield Fault(
            kind=f"width of {name}",
            message=f"registers: the wgmma of {name}, {WARPGROUP_ROWS} x {columns} ({key}), takes "
            f"{columns} / 2 + {needed - columns // 2} = {needed}, but ptxas compiles it for the "
            f"{entry} that each of {WARPGROUP * (1 + warpgroups)} threads has at launch",
            keys=("BN", *TILE_KEYS) if key == "BN" else TILE_KEYS,
            remedies=(_narrower_blocks(values), _fewer_warpgroups(values)),
            last_resort=_smaller_in_every_way(values),
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
        yield with_warpgroups(values.config, warpgroups)


def _smaller_in_every_way(values: Values) -> Iterator[Changes]:
    """Yield changes of several keys at once, those that change the fewest first."""
    written = values.config.registers != "auto"
    registers: list[Changes] = [{}, {"registers": "auto"}] if written else [{}]
    stages = [{}, *(fewer for fewer in _fewer_stages(values) if fewer["num_kv_stages"] in (1, 2))]
    warpgroups = [{}, *_fewer_warpgroups(values)]
    blocks = [{}, *_narrower_blocks(values)]
    combinations = list(product(registers, warpgroups, stages, blocks))
    combinations.sort(key=lambda changes: sum(map(bool, changes)))
    for several in combinations:
        yield {key: value for changes in several for key, value in changes.items()}
