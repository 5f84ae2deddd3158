"""The hardware's limits on a Hopper matrix product, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common import limits
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.common.shared_memory import dynamic_shared_bytes
from fa4gen.designs.gemm_sm90.memory import gemm_regions
from fa4gen.designs.gemm_sm90.rules import all_automatic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.refusal import Changes, Refusal
    from fa4gen.designs.gemm_sm90.values import Values

WIDTHS = (256, 192, 128, 64, 32, 16)
"""The widths of suggested fixes: those above 64 suit every layout."""
TILE_KEYS = ("BN", "BM", "num_consumer_warpgroups")


def exceeded_limits(values: Values) -> Iterator[Refusal]:
    """Yield each limit that the values exceed."""
    stage, rows = values.stage_bytes, values.warpgroup_rows
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
    yield from limits.consumer_registers(
        values,
        values.accumulators + values.products,
        f"{rows} * {columns} / {WARPGROUP} of the tile"
        + f" + {values.products} of the products of a block" * bool(values.operand_scales),
        (*TILE_KEYS, "registers"),
        limits.each_to_auto(values.config),
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
