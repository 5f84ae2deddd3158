"""The hardware's limits on a Hopper attention kernel, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.attention_sm90.memory import (
    MIN_BLOCK,
    PROBABILITY_REGISTERS,
    ROW_REGISTERS,
)
from fa4gen.designs.common import limits
from fa4gen.designs.common.roles import WARPGROUP_ROWS
from fa4gen.designs.registry import design_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.attention_sm90.memory import HopperMemory
    from fa4gen.designs.common.refusal import Changes, Refusal

TILE_KEYS = ("BM", "value_depth", "depth")


def exceeded_limits(plan: HopperMemory) -> Iterator[Refusal]:
    """Yield each limit that the plan exceeds."""
    yield from _shared_memory(plan)
    yield from limits.register_split(plan, _smaller_in_every_way(plan))
    yield from limits.range_of_fp8(plan)
    yield from _consumer_registers(plan)
    yield from _wgmma_width(plan)


def _shared_memory(plan: HopperMemory) -> Iterator[Refusal]:
    ring, config = plan.rings[0], plan.config
    yield from limits.shared_memory(
        plan,
        (ring.key, "BN", *TILE_KEYS),
        (ring.fewer(config), _narrower_blocks(plan), _fewer_warpgroups(plan)),
        _smaller_in_every_way(plan),
    )


def _consumer_registers(plan: HopperMemory) -> Iterator[Refusal]:
    """Yield a fault where what must be in registers at once does not fit them.

    That is when Q.K is issued. What else a thread keeps is for the compiler to say.
    """
    depth, block = plan.value_depth, plan.BN
    chunks = min(plan.num_pv_chunks_in_flight, plan.num_chunks)
    each = PROBABILITY_REGISTERS
    yield from limits.consumer_registers(
        plan,
        depth // 2 + block // 2 + each * chunks + ROW_REGISTERS,
        f"{depth} / 2 of output + {block} / 2 of scores + {each} * {chunks} of probabilities in "
        f"flight + {ROW_REGISTERS} of row state",
        ("BN", "num_pv_chunks_in_flight", "registers", *TILE_KEYS),
        limits.each_to_auto(plan.config),
        limits.back_to_auto(plan.config, design_for(plan.config).tuned_keys),
    )


def _wgmma_width(plan: HopperMemory) -> Iterator[Refusal]:
    """Yield a fault for a matrix product that ptxas does not compile for this number of threads."""
    of_values = "depth" if plan.config.value_depth == "auto" else "value_depth"
    products = (("Q.K", "BN", plan.BN), ("P.V", of_values, plan.value_depth))
    for name, key, columns in products:
        yield from limits.wgmma_width(
            plan,
            columns,
            f"the wgmma of {name}, {WARPGROUP_ROWS} x {columns} ({key}),",
            f"width of {name}",
            ("BN", *TILE_KEYS) if key == "BN" else TILE_KEYS,
            (_narrower_blocks(plan), _fewer_warpgroups(plan)),
            _smaller_in_every_way(plan),
            register_a=name == "P.V",
        )


def _narrower_blocks(plan: HopperMemory) -> Iterator[Changes]:
    """Yield narrower and narrower blocks, with no more chunks in flight than each has."""
    asked = plan.config.num_pv_chunks_in_flight
    step = plan.chunk_keys
    for block in range(plan.BN - step, step - 1, -step):
        chunks = block // step
        if asked != "auto" and chunks < asked <= plan.num_chunks:
            yield {"BN": block, "num_pv_chunks_in_flight": chunks}
        else:
            yield {"BN": block}


def _fewer_warpgroups(plan: HopperMemory) -> Iterator[Changes]:
    for warpgroups in range(plan.num_consumer_warpgroups - 1, 0, -1):
        yield {"BM": WARPGROUP_ROWS * warpgroups}


def _smaller_in_every_way(plan: HopperMemory) -> Iterator[Changes]:
    """Yield changes of several keys at once, those that change the fewest first."""
    written = plan.config.registers != "auto"
    # Where no block is narrower, one that is written may still be: of more registers.
    few = [{"BN": block} for block in (64, 32, MIN_BLOCK) if block >= plan.chunk_keys]
    blocks = [*_narrower_blocks(plan)] or few
    yield from limits.in_every_way(
        [{"registers": "auto"}] if written else [],
        [*_fewer_warpgroups(plan)],
        plan.rings[0].fewer(plan.config)[-2:],
        blocks,
    )
