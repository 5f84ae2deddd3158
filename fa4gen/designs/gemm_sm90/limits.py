"""The hardware's limits on a Hopper matrix product, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.gemm_sm90.memory import gemm_regions
from fa4gen.designs.gemm_sm90.rules import all_automatic
from fa4gen.designs.shared import limits
from fa4gen.designs.shared.gemm_model import costly_calls
from fa4gen.designs.shared.roles import WARPGROUP
from fa4gen.designs.shared.shared_memory import dynamic_shared_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.gemm_sm90.values import Values
    from fa4gen.designs.shared.refusal import Changes, Fault

WIDTHS = (256, 192, 128, 64, 32, 16)
"""That a suggested fix has: those above 64 suit every layout."""
TILE_KEYS = ("BN", "BM", "num_consumer_warpgroups")
BESIDE_SUMS = {1: 40, 2: 40, 3: 32}
"""Address and parity of a slot, counts, factors, pieces of the output, by consumer warpgroups: with
24, ptxas spills 2 KB and waits for each wgmma; 32 are the most that three warpgroups have."""
BESIDE_PARTS_OF_K = 48
"""The same of up to two warpgroups with ``split_k``: with 40, up to 36 bytes spilled."""
BESIDE_ACTIVATIONS = (56, 64)
"""The same with one costly call in the activation, and with several: 40 and 48 spilled."""


def exceeded_limits(values: Values) -> Iterator[Fault]:
    """Yield each limit that the values exceed."""
    stage, rows = values.a_bytes + values.b_bytes, values.warpgroup_rows
    columns, key = values.wgmma_columns, "BM" if values.config.swap_operands else "BN"
    panels = values.num_consumer_warpgroups * values.num_epi_stages
    sums = values.num_consumer_warpgroups * values.sums_bytes if values.is_split else 0
    needed = dynamic_shared_bytes(gemm_regions(values))
    yield from limits.shared_memory(
        needed,
        values.arch.shared_bytes,
        [
            f"{values.num_stages} * {stage} for stages of A and B",
            f"{panels} * {values.epi_bytes} for panels of the output",
            *([f"{sums} for sums of the peer"] if sums else []),
            f"{needed - values.num_stages * stage - panels * values.epi_bytes - sums} for barriers "
            "and alignment",
        ],
        ("num_stages", "num_epi_stages", "BK", *TILE_KEYS),
        (_fewer("num_stages", values), _fewer("num_epi_stages", values), _narrower(values)),
        _smaller_in_every_way(values),
    )
    yield from limits.register_split(values, _smaller_in_every_way(values))
    others = _other_registers(values)
    yield from limits.consumer_registers(
        values,
        values.accumulators + others,
        f"{rows} * {columns} / {WARPGROUP} of the tile + {others} of addresses, factors and pieces "
        "of the output",
        (*TILE_KEYS, "registers"),
        (_narrower(values), _fewer_rows(values)),
        _smaller_in_every_way(values),
    )
    yield from limits.wgmma_width(
        values,
        columns,
        f"a wgmma of 64 x {columns} ({key})",
        "width",
        TILE_KEYS,
        (_narrower(values), _fewer_rows(values)),
        _smaller_in_every_way(values),
    )


def _other_registers(values: Values) -> int:
    """Return what a consumer needs beside its sums. Measured: with fewer, ptxas 13 spills."""
    calls = costly_calls(values.config.activation or "")
    if calls > 0:
        return BESIDE_ACTIVATIONS[calls > 1]
    if values.is_split and values.num_consumer_warpgroups <= 2:
        return BESIDE_PARTS_OF_K
    return BESIDE_SUMS[values.num_consumer_warpgroups]


def _fewer(key: str, values: Values) -> Iterator[Changes]:
    if getattr(values.config, key) != "auto":
        for slots in range(getattr(values, key) - 1, 0, -1):
            yield {key: slots}


def _narrower(values: Values) -> Iterator[Changes]:
    for columns in WIDTHS:
        if columns < values.BN:
            yield {"BN": columns}


def _fewer_rows(values: Values) -> Iterator[Changes]:
    for rows in (192, 128, 64, 32, 16):
        if rows < values.BM:
            yield {"BM": rows, "num_consumer_warpgroups": "auto"}


def _smaller_in_every_way(values: Values) -> Iterator[Changes]:
    """Yield changes of several keys at once, those that change the fewest first."""
    automatic: list[list[Changes]] = [
        [{key: "auto"}]
        for key in ("registers", "num_stages", "num_epi_stages", "BK")
        if getattr(values.config, key) != "auto"
    ]
    yield from limits.in_every_way(*automatic, [*_narrower(values)], [*_fewer_rows(values)])
    yield all_automatic(values)
    if values.is_split:
        yield {**all_automatic(values), "split_k": 1}
