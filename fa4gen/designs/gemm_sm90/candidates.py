"""The candidates of products on Hopper: other splits of the registers, then smaller tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fa4gen.designs.common.candidates import Changes
    from fa4gen.designs.gemm_sm90.config import HopperGemmConfig

SPLITS: tuple[Changes, ...] = (
    {"registers": {"producer": 40, "consumer": 152}},
    {"registers": {"producer": 24, "consumer": 240}},
)
"""Registers with three consumer warpgroups and with two: the loader has more, or the consumers."""
WIDTHS = (192, 128, 64, 32, 16)


def candidates(config: HopperGemmConfig) -> Iterator[Changes]:
    """Yield candidates, in order."""
    if config.scales is not None:
        yield {"multiply_ahead": False}
    yield from SPLITS
    for slots in (2, 1):
        yield {"num_epi_stages": slots}
    for size in WIDTHS:
        tile: Changes = {"BM": size} if config.swap_operands else {"BN": size}
        yield tile
        for split in SPLITS:
            yield {**tile, **split, "num_epi_stages": 2}
