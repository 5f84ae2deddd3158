"""The hardware's limits on a Hopper matrix product, and suggested fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fa4gen.designs.common import limits
from fa4gen.designs.common.roles import WARPGROUP
from fa4gen.designs.gemm_sm90.rules import all_automatic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.refusal import Changes, Refusal
    from fa4gen.designs.gemm_sm90.memory import HopperGemmMemory

WIDTHS = (256, 192, 128, 64, 32, 16)
"""The widths of suggested fixes: those above 64 suit every layout."""
TILE_KEYS = ("BN", "BM", "num_consumer_warpgroups")


def exceeded_limits(plan: HopperGemmMemory) -> Iterator[Refusal]:
    """Yield each limit that the plan exceeds."""
    rows, columns = plan.warpgroup_rows, plan.sum_columns
    key, config = "BM" if plan.swap_operands else "BN", plan.config
    stages, epi = plan.ring, plan.epi_rings[0]
    yield from limits.shared_memory(
        plan,
        (stages.key, epi.key, "BK", *TILE_KEYS),
        (stages.fewer(config), epi.fewer(config), _narrower(plan)),
        _smaller_in_every_way(plan),
    )
    yield from limits.register_split(plan, _smaller_in_every_way(plan))
    yield from limits.consumer_registers(
        plan,
        plan.accumulators + plan.products,
        f"{rows} * {columns} / {WARPGROUP} of the tile"
        + f" + {plan.products} of the products of a block" * bool(plan.scales),
        (*TILE_KEYS, "registers"),
        limits.each_to_auto(plan.config),
        _smaller_in_every_way(plan),
    )
    yield from limits.wgmma_width(
        plan,
        columns,
        f"a wgmma of 64 x {columns} ({key})",
        "width",
        TILE_KEYS,
        (_narrower(plan), _fewer_rows(plan)),
        _smaller_in_every_way(plan),
    )


def _narrower(plan: HopperGemmMemory) -> Iterator[Changes]:
    for columns in WIDTHS:
        if columns < plan.BN:
            yield {"BN": columns}


def _fewer_rows(plan: HopperGemmMemory) -> Iterator[Changes]:
    for rows in (192, 128, 64, 32, 16):
        if rows < plan.BM:
            yield {"BM": rows, "num_consumer_warpgroups": "auto"}


def _smaller_in_every_way(plan: HopperGemmMemory) -> Iterator[Changes]:
    """Yield changes of several keys at once, those that change the fewest first."""
    automatic: list[list[Changes]] = [
        [{key: "auto"}]
        for key in ("registers", "num_stages", "num_epi_stages", "BK")
        if getattr(plan.config, key) != "auto"
    ]
    yield from limits.in_every_way(*automatic, [*_narrower(plan)], [*_fewer_rows(plan)])
    yield all_automatic(plan)
    if plan.is_split:
        yield {**all_automatic(plan), "split_k": 1}
