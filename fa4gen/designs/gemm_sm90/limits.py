"""The hardware's limits on a Hopper matrix product: what is proved not to fit, and ways to fit.

Only what cannot work whatever the compiler does is refused: what merely may spill is left to the
compiler, whose log is checked.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from fa4gen.designs.gemm_sm90.memory import dynamic_shared_bytes, gemm_regions
from fa4gen.designs.gemm_sm90.rules import all_automatic
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

    from fa4gen.designs.gemm_sm90.values import Values

WIDTHS = (256, 192, 128, 64)
TILE_KEYS = ("BN", "BM", "num_consumer_warpgroups")
ADDRESS_REGISTERS = 4
"""Address and parity of a slot, the loop's count, alpha: never in fewer registers."""


def exceeded_limits(values: Values) -> Iterator[Fault]:
    """Yield each limit that the values exceed."""
    yield from _shared_memory(values)
    yield from _register_split(values)
    yield from _consumer_registers(values)
    yield from _wgmma_width(values)


def _shared_memory(values: Values) -> Iterator[Fault]:
    needed = dynamic_shared_bytes(gemm_regions(values))
    available = values.arch.shared_bytes
    if needed <= available:
        return
    stage = values.a_bytes + values.b_bytes
    panels = values.num_consumer_warpgroups * values.num_epi_stages
    rest = needed - values.num_stages * stage - panels * values.epi_bytes
    yield Fault(
        kind="shared memory",
        message=f"shared memory: {values.num_stages} * {stage} for stages of A and B + {panels} * "
        f"{values.epi_bytes} for panels of the output + {rest} for barriers and alignment = "
        f"{needed} bytes, but a CTA has {available}",
        keys=("num_stages", "num_epi_stages", "BK", *TILE_KEYS),
        remedies=(
            _fewer("num_stages", values),
            _fewer("num_epi_stages", values),
            _narrower(values),
        ),
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
    """Yield a fault where a warpgroup's part of the tile does not fit its registers."""
    rows, columns = values.warpgroup_rows, values.BN
    needed = values.accumulators + ADDRESS_REGISTERS
    split = nearest_split(values.arch, values.registers, values.num_consumer_warpgroups)
    available = min(split.consumer, values.arch.max_registers_per_thread)
    if needed <= available:
        return
    yield Fault(
        kind="consumer registers",
        message=f"registers: a consumer thread holds {rows} * {columns} / {WARPGROUP} of the tile "
        f"+ {ADDRESS_REGISTERS} of addresses and factors = {needed}, but has {available}",
        keys=(*TILE_KEYS, "registers"),
        remedies=(_narrower(values), _fewer_rows(values)),
        last_resort=_smaller_in_every_way(values),
    )


def _wgmma_width(values: Values) -> Iterator[Fault]:
    """Yield a fault for a matrix product that ptxas does not compile for so many threads."""
    warpgroups, columns = values.num_consumer_warpgroups, values.BN
    needed = wgmma_registers(columns, register_a=False)
    entry = registers_at_entry(values.arch, warpgroups)
    if needed <= entry:
        return
    yield Fault(
        kind="width",
        message=f"registers: a wgmma of 64 x {columns} (BN) takes {columns} / 2 + "
        f"{needed - columns // 2} = {needed}, but ptxas compiles it for the {entry} that each of "
        f"{WARPGROUP * (1 + warpgroups)} threads has at launch",
        keys=TILE_KEYS,
        remedies=(_narrower(values), _fewer_rows(values)),
        last_resort=_smaller_in_every_way(values),
    )


def _fewer(key: str, values: Values) -> Iterator[Changes]:
    if getattr(values.config, key) != "auto":
        for slots in range(getattr(values, key) - 1, 0, -1):
            yield {key: slots}


def _narrower(values: Values) -> Iterator[Changes]:
    for columns in WIDTHS:
        if columns < values.BN:
            yield {"BN": columns}


def _fewer_rows(values: Values) -> Iterator[Changes]:
    for rows in (192, 128, 64):
        if rows < values.BM:
            yield {"BM": rows, "num_consumer_warpgroups": "auto"}


def _smaller_in_every_way(values: Values) -> Iterator[Changes]:
    """Yield changes of several keys at once, those that change the fewest first."""
    automatic = [
        {key: "auto"}
        for key in ("registers", "num_stages", "num_epi_stages", "BK")
        if getattr(values.config, key) != "auto"
    ]
    ways = [[{}, change] for change in automatic]
    combinations = list(product(*ways, [{}, *_narrower(values)], [{}, *_fewer_rows(values)]))
    combinations.sort(key=lambda changes: sum(map(bool, changes)))
    for several in combinations:
        yield {key: value for changes in several for key, value in changes.items()}
    yield all_automatic(values)
